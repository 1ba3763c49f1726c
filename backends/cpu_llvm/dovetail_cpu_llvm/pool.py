"""The threads that share a launch: Python daemon threads that live inside one generated function.

A job is published by raising the generation; workers spin for it a little, then sleep on a
condition variable. A woken worker may be put on the core of whoever woke it, and wait there for as
long as that one computes: so sleepers are kept off that core until they are awake. Whoever takes
part counts itself in (`INSIDE`) before it looks whether the job is open, so the launching thread
waits only for those that really work, never for one that the system has not woken yet. To wake one
takes longer than a small launch: that is shared by those who are awake, and wakes somebody only
when many of them have followed each other. There is one job at a time: a second thread that
launches meanwhile does its own work alone. Tiles are independent, so no result depends on who takes
them.

On a machine that is busy with other work a helper may lose its core in the middle of a tile, and
the launching thread waits for as long as the others' turn is. Whoever has waited so computes alone
for `ALONE_FOR` times as long: what is lost to such waiting is a small part of the time, and two
threads are hardly slower than one, however busy the machine.

Each thread begins with a range of its own, the same one every time, so that what it wrote before is
in its core's cache when it comes to it again. Who has done that goes on with what others have left,
unless they come to its end in a moment: what one takes from another, both have to fetch.

How long that takes depends on where the system, or a virtual machine's host, has put the threads:
a line of memory goes to the other core and back in 0.1 us, or in 0.5 between sockets. So now and
then the time is taken (`ping`), and while threads are far from each other they share what is worth
it (the lowest bit of `operations`), not what is small, or what each reads of the others' results.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Mapping

from dovetail.extend import ArgumentError, Lock, whole_setting

# Indices of the 8-byte fields of the state; what different threads write is 128 bytes apart.
GENERATION, SLEEPERS, BUSY, INSIDE = 0, 16, 32, 48
OPEN, FUNCTION, ARGUMENTS, TILES, WORKERS, THREADS = 80, 81, 82, 83, 84, 85
MUTEX, CONDITION, LAUNCHER, CORES, REST = 96, 112, 128, 129, 145
PING, PONG, NEXT = 160, 176, 192
LAST, OWED = 86, 87  # of launches that nobody was woken for: when, in ns, and their operations
UNTIL = 88  # when launches are shared again, in ns; 0: they are
PROBED, DISTANCE, FAR = 89, 90, 91  # when the distance was measured, in ns; what it was; 1: far

MOST = 1024  # threads: more cores than `sched_setaffinity` is asked about here
SIZE = NEXT + 16 * MOST  # NEXT: of each range, the tile that is taken next; beside it:
THREAD, MOVED = NEXT + 8, NEXT + 9  # the worker's number in the system; 1: it was kept off a core
SHARE = 1_000_000  # scalar operations of a launch that sleepers are woken for
OWED_MOST = 10_000_000  # or of launches that follow each other within ...
SOON = 100_000  # ns
SPINS = 14_000  # about 0.2 ms before a worker sleeps: longer than Python takes between two launches
PATIENCE = 3_500  # about 50 us before the launching thread gives way to others
ALONE_FOR = 16  # times as long as the launching thread has waited
PARTS = 32  # of its range that a thread takes, one after the other, if there are so many tiles
GRACE = 64  # about 1 us before a thread that is done takes from what another has left
EVERY = 50_000_000  # ns between two measurements of how far threads are from each other
FAR_FROM, NEAR_TO = 300, 200  # ns for a line to go and come: they are far; they are near again
ROUNDS = 8  # of which the shortest counts
UNHEARD = 10_000  # about 0.15 ms that an answer is waited for: a sleeper has to wake first
FAIR = 2  # times as long as what is taken at once that the wait for the last of it may be

STATE = {
    "generation": GENERATION, "sleepers": SLEEPERS, "busy": BUSY, "inside": INSIDE, "next": NEXT,
    "open": OPEN, "function": FUNCTION, "arguments": ARGUMENTS, "tiles": TILES, "workers": WORKERS,
    "threads": THREADS, "mutex": MUTEX, "condition": CONDITION, "launcher": LAUNCHER,
    "cores": CORES, "rest": REST, "thread": THREAD, "moved": MOVED,
    "last": LAST, "owed": OWED, "until": UNTIL, "probed": PROBED, "distance": DISTANCE,
    "far": FAR, "ping": PING, "pong": PONG,
}  # fmt: skip
# Where all of it is, for each function: LLVM drops what is not used.
POINTERS = "\n".join(f"  %{n}p = getelementptr i64, ptr %state, i64 {k}" for n, k in STATE.items())

IR = f"""
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @sched_yield()
declare i64 @llvm.umin.i64(i64, i64)
declare i32 @clock_gettime(i32, ptr)
declare i32 @sched_getcpu()
declare i32 @sched_setaffinity(i32, i64, ptr)

; Keeps a thread (0: the one that asks) off core `here`, if there are others. What is kept off is
; let go by `sched_setaffinity` to all cores: nothing stays pinned.
define internal void @keep_off(ptr %state, i32 %thread, i64 %here) noinline {{
{POINTERS}
  %others = alloca [16 x i64]
  call void @llvm.memcpy.p0.p0.i64(ptr %others, ptr %coresp, i64 128, i1 false)
  %word = lshr i64 %here, 6
  %wordp = getelementptr i64, ptr %others, i64 %word
  %bits = load i64, ptr %wordp
  %shift = and i64 %here, 63
  %bit = shl i64 1, %shift
  %mask = xor i64 %bit, -1
  %left = and i64 %bits, %mask
  store i64 %left, ptr %wordp
  call i32 @sched_setaffinity(i32 %thread, i64 128, ptr %others)
  ret void
}}

; Moves a worker off the core of the launching thread, where the system may have put it: left alone,
; the two would share that core for as long as the launches go on.
define internal void @apart(ptr %state, i64 %id) noinline {{
{POINTERS}
  %slot = shl i64 %id, 4
  %mine = getelementptr i64, ptr %movedp, i64 %slot
  %kept = load atomic i64, ptr %mine acquire, align 8
  %launcher = load atomic i64, ptr %launcherp monotonic, align 8
  %here32 = call i32 @sched_getcpu()
  %here = sext i32 %here32 to i64
  %same = icmp eq i64 %here, %launcher
  %known = icmp ult i64 %here, 1024
  %go = and i1 %same, %known
  br i1 %go, label %move, label %look
move:
  call void @keep_off(ptr %state, i32 0, i64 %here)
  br label %home
look:
  %was = icmp ne i64 %kept, 0
  br i1 %was, label %home, label %stay
home:
  store atomic i64 0, ptr %mine monotonic, align 8
  call i32 @sched_setaffinity(i32 0, i64 128, ptr %coresp)
  br label %stay
stay:
  ret void
}}

; Before sleepers are woken: none of them is put on the core of the launching thread.
define internal void @elsewhere(ptr %state) noinline {{
entry:
{POINTERS}
  %launcher = load atomic i64, ptr %launcherp monotonic, align 8
  %known = icmp ult i64 %launcher, 1024
  %workers = load atomic i64, ptr %workersp monotonic, align 8
  br i1 %known, label %each, label %done
each:
  %i = phi i64 [ 0, %entry ], [ %i1, %next ]
  %slot = shl i64 %i, 4
  %threadat = getelementptr i64, ptr %threadp, i64 %slot
  %number = load atomic i64, ptr %threadat monotonic, align 8
  %there = icmp ne i64 %number, 0
  br i1 %there, label %keep, label %next
keep:
  %thread = trunc i64 %number to i32
  call void @keep_off(ptr %state, i32 %thread, i64 %launcher)
  %movedat = getelementptr i64, ptr %movedp, i64 %slot
  store atomic i64 1, ptr %movedat release, align 8  ; after: who reads it is off
  br label %next
next:
  %i1 = add i64 %i, 1
  %more = icmp slt i64 %i1, %workers
  br i1 %more, label %each, label %done
done:
  ret void
}}

; Takes chunks of tiles from the open job until none is left, of the range `id` first.
define internal void @take(ptr %state, i64 %id) {{
entry:
{POINTERS}
  %function = load ptr, ptr %functionp
  %arguments = load ptr, ptr %argumentsp
  %tiles = load i64, ptr %tilesp
  %threads = load i64, ptr %threadsp
  %others = sub i64 %threads, 1
  %up = add i64 %tiles, %others
  %range = udiv i64 %up, %threads
  %part = udiv i64 %range, {PARTS}
  %chunk = add i64 %part, 1
  br label %turn
turn:
  %k = phi i64 [ 0, %entry ], [ %k1, %through ]
  %sum = add i64 %id, %k
  %which = urem i64 %sum, %threads
  %first = mul i64 %which, %range
  %past = add i64 %first, %range
  %inner = icmp slt i64 %past, %tiles
  %last = select i1 %inner, i64 %past, i64 %tiles
  %slot = shl i64 %which, 4
  %mine = getelementptr i64, ptr %nextp, i64 %slot
  %own = icmp eq i64 %k, 0
  br i1 %own, label %again, label %wait
wait:
  %waits = phi i64 [ 0, %turn ], [ %waits1, %linger ]
  %reached = load atomic i64, ptr %mine monotonic, align 8
  %left = icmp slt i64 %reached, %last
  br i1 %left, label %linger, label %through
linger:
  PAUSE
  %waits1 = add i64 %waits, 1
  %late = icmp ugt i64 %waits1, {GRACE}
  br i1 %late, label %again, label %wait
again:
  %begin = atomicrmw add ptr %mine, i64 %chunk monotonic
  %some = icmp slt i64 %begin, %last
  br i1 %some, label %work, label %through
work:
  %beyond = add i64 %begin, %chunk
  %whole = icmp slt i64 %beyond, %last
  %end = select i1 %whole, i64 %beyond, i64 %last
  call void %function(ptr %arguments, i64 %begin, i64 %end)
  br label %again
through:
  %k1 = add i64 %k, 1
  %more = icmp ult i64 %k1, %threads
  br i1 %more, label %turn, label %done
done:
  ret void
}}

define void @worker(ptr %state, i64 %id) {{
entry:
{POINTERS}
  br label %watch
watch:
  %seen = phi i64 [ 0, %entry ], [ %now, %out ]
  br label %spin
spin:
  %spins = phi i64 [ 0, %watch ], [ %spins1, %wait ]
  %g1 = load atomic i64, ptr %generationp acquire, align 8
  %new1 = icmp ne i64 %g1, %seen
  br i1 %new1, label %join, label %wait
wait:
  PAUSE
  %spins1 = add i64 %spins, 1
  %long = icmp eq i64 %spins1, {SPINS}
  %rest = load atomic i64, ptr %restp monotonic, align 8
  %told = icmp ne i64 %rest, 0
  %tired = or i1 %long, %told
  br i1 %tired, label %lie, label %spin
lie:
  APART  ; who was kept off a core while awake does not sleep so
  call i32 @pthread_mutex_lock(ptr %mutexp)
  atomicrmw add ptr %sleepersp, i64 1 seq_cst
  br label %sleep
sleep:
  %g2 = load atomic i64, ptr %generationp seq_cst, align 8
  %new2 = icmp ne i64 %g2, %seen
  br i1 %new2, label %rise, label %doze
doze:
  call i32 @pthread_cond_wait(ptr %conditionp, ptr %mutexp)
  br label %sleep
rise:
  atomicrmw sub ptr %sleepersp, i64 1 seq_cst
  call i32 @pthread_mutex_unlock(ptr %mutexp)
  br label %join
join:
  %now = phi i64 [ %g1, %spin ], [ %g2, %rise ]
  APART
  atomicrmw add ptr %insidep, i64 1 seq_cst
  %open = load atomic i64, ptr %openp seq_cst, align 8
  %workers = load atomic i64, ptr %workersp monotonic, align 8
  %wanted = icmp slt i64 %id, %workers
  %opened = icmp ne i64 %open, 0
  %go = and i1 %opened, %wanted
  br i1 %go, label %work, label %out
work:
  call void @take(ptr %state, i64 %id)
  br label %out
out:
  atomicrmw sub ptr %insidep, i64 1 seq_cst
  br label %watch
}}

; The time, in ns.
define internal i64 @now() noinline {{
  %time = alloca [2 x i64]
  call i32 @clock_gettime(i32 CLOCK, ptr %time)
  %seconds = load i64, ptr %time
  %restp2 = getelementptr i64, ptr %time, i64 1
  %rest2 = load i64, ptr %restp2
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %rest2
  ret i64 %now
}}

; Whether launches are shared again, after one that had to be waited for.
define internal i1 @again(ptr %state, i64 %until) noinline {{
{POINTERS}
  %now = call i64 @now()
  %over = icmp uge i64 %now, %until
  br i1 %over, label %clear, label %left
clear:
  store atomic i64 0, ptr %untilp monotonic, align 8
  ret i1 true
left:
  ret i1 false
}}

; Notes that the launching thread waited from `idle` on for a launch that was begun at `begun`:
; unless that may be the time of the tiles that somebody had just taken when there were none left.
define internal void @waited(ptr %state, i64 %begun, i64 %idle, i64 %tiles, i64 %threads)
    noinline {{
{POINTERS}
  %now = call i64 @now()
  %wait = sub i64 %now, %idle
  %worked = sub i64 %idle, %begun
  %range = udiv i64 %tiles, %threads
  %part = udiv i64 %range, {PARTS}
  %chunk = add i64 %part, 1
  %allowed = mul i64 %threads, {FAIR}
  %taken = mul i64 %chunk, %allowed
  %most = mul i64 %worked, %taken
  %all = mul i64 %wait, %tiles
  %fair = icmp ult i64 %all, %most
  br i1 %fair, label %done, label %note
note:
  %long = mul i64 %wait, {ALONE_FOR}
  %until = add i64 %now, %long
  store atomic i64 %until, ptr %untilp monotonic, align 8
  br label %done
done:
  ret void
}}

; Whether this small launch and those before it would have been worth a wake-up.
define internal i1 @worth(ptr %state, i64 %operations) noinline {{
{POINTERS}
  %now = call i64 @now()
  %last = load atomic i64, ptr %lastp monotonic, align 8
  store atomic i64 %now, ptr %lastp monotonic, align 8
  %owed = load atomic i64, ptr %owedp monotonic, align 8
  %gap = sub i64 %now, %last
  %soon = icmp ult i64 %gap, {SOON}
  %before = select i1 %soon, i64 %owed, i64 0
  %sum = add i64 %before, %operations
  %enough = icmp uge i64 %sum, {OWED_MOST}
  %left = select i1 %enough, i64 0, i64 %sum
  store atomic i64 %left, ptr %owedp monotonic, align 8
  ret i1 %enough
}}

; A job of one tile for each thread. The launching thread has the last, and asks; the first worker
; answers. Nothing is found out where that one does not come in time, or nobody shares.
define internal void @ping(ptr %state, i64 %begin, i64 %end) noinline {{
entry:
{POINTERS}
  %tiles = sub i64 %end, %begin
  %shared = icmp eq i64 %tiles, 1
  br i1 %shared, label %who, label %done
who:
  %workers = load atomic i64, ptr %workersp monotonic, align 8
  %asks = icmp eq i64 %begin, %workers
  br i1 %asks, label %ask, label %other
other:
  %answers = icmp eq i64 %begin, 0
  br i1 %answers, label %answer, label %done

ask:
  %round = phi i64 [ 1, %who ], [ %round1, %back ]
  %least = phi i64 [ {1 << 40}, %who ], [ %least1, %back ]
  %sent = call i64 @now()
  store atomic i64 %round, ptr %pingp release, align 8
  br label %listen
listen:
  %spins = phi i64 [ 0, %ask ], [ %spins1, %silence ]
  %heard = load atomic i64, ptr %pongp acquire, align 8
  %right = icmp eq i64 %heard, %round
  br i1 %right, label %back, label %silence
silence:
  PAUSE
  %spins1 = add i64 %spins, 1
  %never = icmp ugt i64 %spins1, {UNHEARD}
  br i1 %never, label %stop, label %listen
back:
  %came = call i64 @now()
  %took = sub i64 %came, %sent
  %least1 = call i64 @llvm.umin.i64(i64 %took, i64 %least)
  %round1 = add i64 %round, 1
  %more = icmp ule i64 %round1, {ROUNDS}
  br i1 %more, label %ask, label %note
note:
  store atomic i64 %least1, ptr %distancep monotonic, align 8
  %was = load atomic i64, ptr %farp monotonic, align 8
  %wasfar = icmp ne i64 %was, 0
  %most = select i1 %wasfar, i64 {NEAR_TO}, i64 {FAR_FROM}
  %isfar = icmp ugt i64 %least1, %most
  %is = zext i1 %isfar to i64
  store atomic i64 %is, ptr %farp monotonic, align 8
  br label %stop
stop:
  store atomic i64 {ROUNDS + 1}, ptr %pingp release, align 8
  ret void

answer:
  %last = phi i64 [ 0, %other ], [ %last, %idle ], [ %asked, %reply ]
  %idles = phi i64 [ 0, %other ], [ %idles1, %idle ], [ 0, %reply ]
  %asked = load atomic i64, ptr %pingp acquire, align 8
  %new = icmp ne i64 %asked, %last
  br i1 %new, label %reply, label %idle
reply:
  store atomic i64 %asked, ptr %pongp release, align 8
  %over = icmp ugt i64 %asked, {ROUNDS}
  br i1 %over, label %done, label %answer
idle:
  PAUSE
  %idles1 = add i64 %idles, 1
  %gone = icmp ugt i64 %idles1, {UNHEARD}
  br i1 %gone, label %done, label %answer
done:
  ret void
}}

; Whether the distance is measured now, after `EVERY`; if so, that is noted.
define internal i1 @due(ptr %state, i64 %now) {{
{POINTERS}
  %probed = load atomic i64, ptr %probedp monotonic, align 8
  %since = sub i64 %now, %probed
  %due = icmp sgt i64 %since, {EVERY}
  %noted = select i1 %due, i64 %now, i64 %probed
  store atomic i64 %noted, ptr %probedp monotonic, align 8
  ret i1 %due
}}

define internal void @measure(ptr %state) noinline {{
{POINTERS}
  store atomic i64 0, ptr %pingp monotonic, align 8
  store atomic i64 0, ptr %pongp monotonic, align 8
  %workers = load atomic i64, ptr %workersp monotonic, align 8
  %threads = add i64 %workers, 1
  call void @share(ptr %state, ptr @ping, ptr %state, i64 %threads, i64 {SHARE | 1})
  ret void
}}

; `operations`: odd if the launch is shared wherever the threads are.
define void @share(ptr %state, ptr %function, ptr %arguments, i64 %tiles, i64 %operations) {{
entry:
{POINTERS}
  %workers = load atomic i64, ptr %workersp monotonic, align 8
  %none = icmp eq i64 %workers, 0
  br i1 %none, label %alone, label %calm
calm:
  %until = load atomic i64, ptr %untilp monotonic, align 8
  %shares = icmp eq i64 %until, 0
  br i1 %shares, label %reach, label %ask
ask:
  %over = call i1 @again(ptr %state, i64 %until)
  br i1 %over, label %reach, label %alone
reach:
  %far = load atomic i64, ptr %farp monotonic, align 8
  %near = icmp eq i64 %far, 0
  %lowest = trunc i64 %operations to i1
  %here = or i1 %near, %lowest
  br i1 %here, label %size, label %apart
apart:
  %moment = call i64 @now()
  %look = call i1 @due(ptr %state, i64 %moment)
  br i1 %look, label %measure, label %alone
measure:
  call void @measure(ptr %state)
  br label %calm
size:
  %large = icmp uge i64 %operations, {SHARE}
  br i1 %large, label %try, label %small
small:
  %dozing = load atomic i64, ptr %sleepersp monotonic, align 8
  %awake = icmp slt i64 %dozing, %workers
  br i1 %awake, label %try, label %weigh
weigh:
  %enough = call i1 @worth(ptr %state, i64 %operations)
  br i1 %enough, label %try, label %alone
try:
  %waking = phi i1 [ true, %size ], [ false, %small ], [ true, %weigh ]
  %pair = cmpxchg ptr %busyp, i64 0, i64 1 seq_cst seq_cst
  %mine = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %mine, label %publish, label %alone
alone:
  call void %function(ptr %arguments, i64 0, i64 %tiles)
  ret void
publish:
  WHERE
  %begun = call i64 @now()
  %due = call i1 @due(ptr %state, i64 %begun)
  br i1 %due, label %later, label %open
later:
  store atomic i64 0, ptr %busyp release, align 8
  br label %measure
open:
  store ptr %function, ptr %functionp
  store ptr %arguments, ptr %argumentsp
  store i64 %tiles, ptr %tilesp
  %threads = add i64 %workers, 1
  store i64 %threads, ptr %threadsp
  %up = add i64 %tiles, %workers
  %range = udiv i64 %up, %threads
  br label %deal
deal:
  %i = phi i64 [ 0, %open ], [ %i1, %deal ]
  %first = mul i64 %i, %range
  %slot = shl i64 %i, 4
  %place = getelementptr i64, ptr %nextp, i64 %slot
  store atomic i64 %first, ptr %place monotonic, align 8
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, %threads
  br i1 %more, label %deal, label %begin
begin:
  store atomic i64 1, ptr %openp seq_cst, align 8
  store atomic i64 0, ptr %restp monotonic, align 8
  atomicrmw add ptr %generationp, i64 1 seq_cst
  %sleepers = load atomic i64, ptr %sleepersp seq_cst, align 8
  %asleep = icmp ne i64 %sleepers, 0
  %rouse = and i1 %asleep, %waking
  br i1 %rouse, label %wake, label %work
wake:
  ELSEWHERE
  call i32 @pthread_mutex_lock(ptr %mutexp)
  call i32 @pthread_cond_broadcast(ptr %conditionp)
  call i32 @pthread_mutex_unlock(ptr %mutexp)
  br label %work
work:
  call void @take(ptr %state, i64 %workers)
  store atomic i64 0, ptr %openp seq_cst, align 8
  br label %spin
spin:
  %spins = phi i64 [ 0, %work ], [ %spins1, %busy ]
  %inside = load atomic i64, ptr %insidep seq_cst, align 8
  %alldone = icmp eq i64 %inside, 0
  br i1 %alldone, label %done, label %busy
busy:
  PAUSE
  %spins1 = add i64 %spins, 1
  %long = icmp ugt i64 %spins1, {PATIENCE}
  br i1 %long, label %idle, label %spin
idle:
  %idle0 = call i64 @now()
  br label %yield
yield:
  call i32 @sched_yield()
  %still = load atomic i64, ptr %insidep seq_cst, align 8
  %gone = icmp eq i64 %still, 0
  br i1 %gone, label %late, label %yield
late:
  call void @waited(ptr %state, i64 %begun, i64 %idle0, i64 %tiles, i64 %threads)
  br label %done
done:
  store atomic i64 0, ptr %busyp release, align 8
  ret void
}}
"""

WHERE = """
  %cpu32 = call i32 @sched_getcpu()
  %cpu = sext i32 %cpu32 to i64
  store atomic i64 %cpu, ptr %launcherp monotonic, align 8"""

ALONE = """
define void @share(ptr %state, ptr %function, ptr %arguments, i64 %tiles, i64 %operations) {
  call void %function(ptr %arguments, i64 0, i64 %tiles)
  ret void
}
define void @worker(ptr %state, i64 %id) {
  ret void
}
"""
SUPPORTED = os.name == "posix"
PLACED = hasattr(os, "sched_setaffinity")  # Linux: threads can be told apart by core


def runtime_ir(triple: str) -> str:
    """The IR of `worker` and `share` for a machine."""
    if not SUPPORTED:
        return ALONE
    pause = ""
    if triple.startswith(("x86_64", "i686")):
        pause = "call void @llvm.x86.sse2.pause()"
    elif triple.startswith(("aarch64", "arm64")):
        pause = "call void @llvm.aarch64.hint(i32 1)"
    where = apart = elsewhere = ""
    text = IR[: IR.index("declare i32 @sched_getcpu")] + IR[IR.index("; Takes") :]
    if PLACED:
        text, where = IR, WHERE
        apart = "call void @apart(ptr %state, i64 %id)"
        elsewhere = "call void @elsewhere(ptr %state)"
    for name, lines in (
        ("PAUSE", pause), ("ELSEWHERE", elsewhere), ("WHERE", where), ("APART", apart),
        ("CLOCK", str(time.CLOCK_MONOTONIC)),
    ):  # fmt: skip
        text = text.replace(name, lines)
    return text


def weight(operations: float, anywhere: bool) -> int:
    """What `share` is told of a launch. `anywhere`: it is worth it while threads are far apart."""
    return max(2, int(min(operations, 1 << 62))) & ~1 | anywhere


def cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Pool:
    """The state that launches share, and the threads behind it, which start when first wanted."""

    def __init__(self, code: Mapping[str, int], threads: int | None = None) -> None:
        self._code = code  # which threads live in, and which so stays loaded as long as they do
        self._worker = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(code["worker"])
        self._memory = (ctypes.c_int64 * (SIZE + 16))()
        start = -(-ctypes.addressof(self._memory) // 128) * 128
        self.state = start
        self._fields = (ctypes.c_int64 * SIZE).from_address(start)
        self._lock = Lock()
        self._started = 0
        self._threads = 1
        self._reset()
        self._set(threads or whole_setting("DOVETAIL_NUM_THREADS", 0, 0, MOST) or cores())
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._after_fork)

    @property
    def num_threads(self) -> int:
        """How many threads share a large launch, the launching one included."""
        return self._threads

    def set_num_threads(self, n: int) -> None:
        """Sets how many threads share a large launch. Raises: ArgumentError."""
        self._set(n)
        self.start()  # launches bound before do not look again

    def _set(self, n: int) -> None:
        if not 1 <= n <= MOST:
            raise ArgumentError(
                f"set_num_threads({n}): there is at least the thread that launches, and no more "
                f"than {MOST:,} are started; give a number between"
            )
        self._threads = n if SUPPORTED else 1
        self._fields[WORKERS] = self._threads - 1

    def start(self) -> None:
        """Starts the threads that are still missing."""
        if self._started >= self._threads - 1:
            return
        with self._lock:
            while self._started < self._threads - 1:
                name = f"dovetail-cpu-{self._started + 1}"
                args = (self._started,)
                threading.Thread(target=self._work, args=args, name=name, daemon=True).start()
                self._started += 1

    def _work(self, worker: int) -> None:
        self._fields[THREAD + 16 * worker] = threading.get_native_id()
        self._worker(self.state, worker)

    def rest(self) -> None:
        """Has idle workers sleep at once: another library's threads are about to need the cores."""
        self._fields[REST] = 1

    def _reset(self) -> None:
        ctypes.memset(self.state, 0, SIZE * 8)
        if SUPPORTED:
            libc = ctypes.CDLL(None)
            libc.pthread_mutex_init(ctypes.c_void_p(self.state + MUTEX * 8), None)
            libc.pthread_cond_init(ctypes.c_void_p(self.state + CONDITION * 8), None)
        self._fields[WORKERS] = self._threads - 1
        if PLACED:
            for core in os.sched_getaffinity(0):
                if core < 1024:
                    word = CORES + core // 64
                    bits = self._fields[word] | 1 << core % 64
                    self._fields[word] = bits - (1 << 64) if bits >> 63 else bits

    def _after_fork(self) -> None:
        """Threads do not survive a fork; what they left half done must not either."""
        self._started = 0
        self._reset()
