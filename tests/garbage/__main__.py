"""Some malformed files of one kind, in a process of their own: `python -m garbage KIND FIRST COUNT` writes a line of JSON each."""

import json
import os
import sys
import tempfile

with tempfile.TemporaryDirectory() as cache:
    os.environ["XDG_CACHE_HOME"] = cache
    from garbage.kinds import BY_NAME
    from garbage.trying import malformed, prepared, tried, whole

    kind, first, count = BY_NAME[sys.argv[1]], int(sys.argv[2]), int(sys.argv[3])
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    with tempfile.TemporaryDirectory() as folder:
        path = prepared(kind, folder)
        path.write_bytes(whole(kind.name))
        first_of_all = tried(kind.door, path)
        out.write(json.dumps({"whole": first_of_all.read, "message": first_of_all.message}) + "\n")
        for number in range(first, first + count):
            out.write(json.dumps({"begun": number}) + "\n")
            path.write_bytes(malformed(kind, number))
            found = tried(kind.door, path)
            out.write(json.dumps({"number": number, **found.__dict__}) + "\n")
