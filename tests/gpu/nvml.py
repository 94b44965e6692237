"""What a device's memory is used for, as the driver's management library says: from outside of the run that is
watched. Standard library only."""
import ctypes
import os
import threading
import time


class Memory(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


class Process(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("gpu_instance", ctypes.c_uint),
                ("compute_instance", ctypes.c_uint)]


class Nvml:
    """OSError with the reason where there is none."""

    def __init__(self):
        path = os.environ.get("TEGULA_NVML", "libnvidia-ml.so.1")
        self.lib = ctypes.CDLL(path)
        answer = self.lib.nvmlInit_v2()
        if answer:
            raise OSError(f"{path}: nvmlInit_v2 answers {answer}")

    def device(self, uuid):
        """Its handle; None: it is not counted (a part of a device, as MIG makes them, is none)."""
        n = ctypes.c_uint()
        self.lib.nvmlDeviceGetCount_v2(ctypes.byref(n))
        for i in range(n.value):
            handle, text = ctypes.c_void_p(), ctypes.create_string_buffer(96)
            if (self.lib.nvmlDeviceGetHandleByIndex_v2(i, ctypes.byref(handle)) == 0
                    and self.lib.nvmlDeviceGetUUID(handle, text, 96) == 0 and text.value.decode() == uuid):
                return handle
        return None

    def used(self, handle):
        """Bytes, by everybody."""
        m = Memory()
        answer = self.lib.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(m))
        if answer:
            raise OSError(f"nvmlDeviceGetMemoryInfo answers {answer}")
        return m.total - m.free

    def processes(self, handle):
        """Their numbers, which may be those of another namespace; None: it does not tell."""
        n, some = ctypes.c_uint(256), (Process * 256)()
        ask = getattr(self.lib, "nvmlDeviceGetComputeRunningProcesses_v3", None)
        if not ask or ask(handle, ctypes.byref(n), some):
            return None
        return frozenset(p.pid for p in some[:n.value])


class Watch:
    """Samples a device's memory in a thread, from `with` on until its end; then `highest` is the most that was used
    beyond what was used before, and `others` says what somebody else changed meanwhile ("": nothing).

    `seen`: processes that were there. `ours`: how many processes of the device are started inside. What we took is given back at the end, so that `used`
    must come back to what it was: else somebody else took or gave."""

    EVERY = 0.002  # seconds; processes are asked for each tenth time
    PATIENCE = 5  # seconds for the driver to take back what a process left

    def __init__(self, nvml, handle, ours=1):
        self.nvml, self.handle, self.ours = nvml, handle, ours
        self.highest = self.samples = 0
        self.others, self.seen = "", set()
        self.over = threading.Event()
        self.lock = threading.Lock()
        self.thread = threading.Thread(target=self.sample)

    def judge(self, now, ours):
        """... a list of processes, in which are that many of ours."""
        self.seen |= now or set()
        if now is None or self.there is None or self.others:
            return
        if len(now - self.there) > ours:
            self.others = f"another process came: {sorted(now - self.there)}, of which {ours} are ours"
        elif self.there - now:
            self.others = f"a process went: {sorted(self.there - now)}"

    def look(self, at_processes=True):
        with self.lock:
            self.highest = max(self.highest, self.nvml.used(self.handle) - self.before)
            self.samples += 1
            if at_processes:
                self.judge(self.nvml.processes(self.handle), self.ours)

    def sample(self):
        while not self.over.wait(self.EVERY):
            self.look(self.samples % 10 == 0)

    def __enter__(self):
        self.before, self.there = self.nvml.used(self.handle), self.nvml.processes(self.handle)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        until = time.monotonic() + self.PATIENCE
        while (after := self.nvml.used(self.handle)) != self.before and time.monotonic() < until:
            time.sleep(0.05)
        self.judge(self.nvml.processes(self.handle), 0)
        if after != self.before and not self.others:
            self.others = f"{self.before} bytes were used before, {after} are afterwards"
