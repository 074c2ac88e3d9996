"""A server in this process, for tests: the real scripts, over a small stand-in for what is around
them in Redis. It is reached by URLs `memory://NAME`; a name is one server.

| module | has |
| --- | --- |
| `server` | one server: its commands one at a time, clients that wait, scripts that it knows |
| `clock` | its time, which tests stop and move |
| `keyspace` | keys, their types and their ends; refusals |
| `sorted_set`, `stream` | the two types that Python has not |
| `arguments` | numbers and options as Redis reads and writes them |
| `all_commands`, `*_commands` | Redis's commands, those that rqueue sends and its scripts call |
| `lua_engine`, `redis_api.lua` | Lua 5.1 (lupa) with `redis`, `cjson` and `struct` |
| `session` | one client's commands and replies, in order |
| `connection`, `async_connection`, `clients` | connections and clients as redis-py has them |

What it lacks is an error that says so; it never guesses. `tests/transport/memory` compares it,
command by command, with real servers. The queue's own rules are nowhere in here: they are the Lua
scripts.
"""
