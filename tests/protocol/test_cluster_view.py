"""What is read out of CLUSTER NODES, as old and new servers write it."""

from rqueue.protocol.cluster_view import OpenSlot, read_view
from rqueue.protocol.slots import Address

ASKED = Address("10.0.0.9", 7000)

SAID = (
    "aa 10.0.0.1:7000@17000,a.internal master - 0 1 1 connected 0-100 200 [93->-bb] [95-<-cc]\n"
    "bb :7000@17000 myself,master - 0 1 2 connected 101-199 201-16383\n"
    "cc 10.0.0.3:7000@17000 master,fail - 0 1 3 disconnected\n"
    "dd 10.0.0.4:7000@17000 slave aa 0 1 1 connected\n"
    "ee 10.0.0.5:7000@17000 slave,fail aa 0 1 1 disconnected\n"
    "ff fd00::1:7000@17000 slave bb 0 1 2 connected\n"
)


def test_rows_of_a_view() -> None:
    view = read_view(SAID, ASKED)
    first, me, gone, *_, last = view.rows
    assert view.me is me
    assert (first.address, first.slots) == (Address("10.0.0.1", 7000), ((0, 100), (200, 200)))
    assert first.count == 102
    assert first.open == (OpenSlot(93, False, "bb"), OpenSlot(95, True, "cc"))
    assert me.address == ASKED, "a node that does not know its own host"
    assert last.address == Address("fd00::1", 7000)
    assert gone.failed and not first.failed
    assert view.masters == [first, me]
    assert [row.id for row in view.replicas(first)] == ["dd"]
    assert [row.id for row in view.replicas(me)] == ["ff"]
    assert view.unserved() == []
    assert view.address_of("aa") == "10.0.0.1:7000" and view.address_of("0123456789") == "01234567"


def test_slots_that_nobody_has() -> None:
    view = read_view("aa h:1@2 myself,master - 0 0 1 connected 1-4 6 9-16382\n", ASKED)
    assert view.unserved() == [(0, 0), (5, 5), (7, 8), (16383, 16383)]
    assert read_view("aa h:1@2 myself,master - 0 0 1 connected\n", ASKED).unserved() == [(0, 16383)]
