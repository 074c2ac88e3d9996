"""The order in which a consumer begins what it holds."""

from rqueue.model.job import Delivery
from rqueue.model.job_order import in_order, in_turn, overtakers


def job(position: int, sort: str = "", level: int = 4) -> Delivery:
    tags = f"|s{sort}" if sort else ""
    return Delivery(f"{position}{sort}", f"{position},1,{level},0,0,0,0{tags};[]".encode())


def test_jobs_with_sort_keys_begin_as_they_were_taken() -> None:
    """Q-14: one with a smaller key that came later goes back for nobody."""
    jobs = [job(1, "262"), job(5, "263"), job(9, "261"), job(2, "261")]
    assert in_turn(jobs) == jobs
    assert overtakers(jobs) == set()


def test_among_others_that_are_out_of_turn_they_stand_by_their_keys() -> None:
    jobs = [job(1, "262"), job(7), job(9, "261"), job(3), job(8, "261", level=9)]
    ordered = [job(8, "261", level=9), job(3), job(7), job(9, "261"), job(1, "262")]
    assert [one.id for one in in_turn(jobs)] == [one.id for one in ordered]
    assert sorted(jobs, key=in_order)[0].level == 9
    assert overtakers(jobs) == {"7"}


def test_where_the_greatest_goes_first_the_noted_keys_decide() -> None:
    """Keys are noted inverted there: `b` before `a`."""
    recalled = [job(1, "d9ez"), job(2, "d9dz")]
    assert [one.sort_key for one in sorted(recalled, key=in_order)] == ["b", "a"]
