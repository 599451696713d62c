"""Several hosts of this one machine: namespaces with a card, processes and names of their own.

Needs root and the programs of iproute2 and util-linux; `missing` says what is not there.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BRIDGE = "rayapp-hosts"
NETWORK = "10.77.0"
GATEWAY = f"{NETWORK}.1"
PROGRAMS = ("ip", "unshare", "nsenter", "setpriv", "mount", "hostname")
# What a host keeps for itself of folders that all of them see: Ray and its HAProxy write there.
OWN = ("/tmp/ray", "/tmp/haproxy-serve")
START_LIMIT_S = 10.0
# The first process of a host reaps what is orphaned: else a dead worker of Ray looks alive.
INIT = """
set -e
mount --make-rprivate /
for path in {own}; do
  mkdir -p "$path" "{folder}/own$path"
  mount --bind "{folder}/own$path" "$path"
done
layer="{folder}/layer"
mkdir -p "$layer"
mountpoint -q "$layer" || mount -t tmpfs tmpfs "$layer"
mkdir -p "$layer/upper" "$layer/work"
mount -t overlay overlay -o "lowerdir=/etc,upperdir=$layer/upper,workdir=$layer/work" /etc
cp "{folder}"/etc/* /etc/
chmod 600 /etc/rayapp.token
hostname "{name}"
touch "{folder}/up"
exec "{python}" -c '
import os, time
while True:
    try:
        os.waitpid(-1, 0)
    except ChildProcessError:
        time.sleep(.1)
'
"""


def missing() -> str | None:
    """What keeps hosts from being made here; None when nothing does."""
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    if absent:
        return f"{', '.join(absent)} missing: apt-get install iproute2 util-linux"
    if os.geteuid() != 0:
        return "hosts of one machine need root"
    trial = ["unshare", "--net", "--mount", "--pid", "--fork", "mount", "--make-rprivate", "/"]
    if subprocess.run(trial, capture_output=True, check=False).returncode:
        return "this machine allows no namespaces"
    return None


def plug_bridge() -> None:
    """The network that the hosts share; this machine is its `GATEWAY`."""
    unplug_bridge()
    _run("ip", "link", "add", BRIDGE, "type", "bridge")
    _run("ip", "address", "add", f"{GATEWAY}/24", "dev", BRIDGE)
    _run("ip", "link", "set", BRIDGE, "up")


def unplug_bridge() -> None:
    subprocess.run(["ip", "link", "delete", BRIDGE], capture_output=True, check=False)


@dataclass
class Host:
    """One host. Its disk (`folder`) and the address of its card outlive a death."""

    name: str
    number: int
    folder: Path
    files: Mapping[str, str] = field(default_factory=dict)
    _outer: subprocess.Popen[bytes] | None = None
    _init: int = 0

    @property
    def address(self) -> str:
        return f"{NETWORK}.{self.number}"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def start(self) -> None:
        """`files`: what `/etc` holds besides this machine's own."""
        for folder in ("home", "etc"):
            (self.folder / folder).mkdir(parents=True, exist_ok=True)
        for name, text in self.files.items():
            (self.folder / "etc" / name).write_text(text)
        for name, place in (("rayapp", ROOT), ("venv", Path(sys.prefix))):
            link = self.home / name
            if not link.is_symlink():
                link.symlink_to(place)
        up = self.folder / "up"
        up.unlink(missing_ok=True)
        script = INIT.format(
            own=" ".join(OWN), folder=self.folder, name=self.name, python=sys.executable
        )
        shell = ("bash", "-c", script)
        spaces = ("--net", "--mount", "--pid", "--fork", "--uts", "--ipc", "--mount-proc")
        with (self.folder / "init.log").open("ab") as log:
            self._outer = subprocess.Popen(
                # It ends with whoever started it, and everything on the host with it.
                ["setpriv", "--pdeathsig", "KILL", "unshare", *spaces, "--kill-child", *shell],
                stdout=log,
                stderr=log,
            )
        end = time.monotonic() + START_LIMIT_S
        while not up.exists():
            assert self._outer.poll() is None, (self.folder / "init.log").read_text()
            assert time.monotonic() < end, f"{self.name} did not start"
            time.sleep(0.02)
        pid = self._outer.pid
        self._init = int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
        self._plug()

    @property
    def _outside(self) -> str:
        """The other end of its cable."""
        return f"rayapp-{self.number}"

    def _unplug(self) -> None:
        subprocess.run(["ip", "link", "delete", self._outside], capture_output=True, check=False)

    def _plug(self) -> None:
        self._unplug()
        # A card keeps its address over a death: else the others ask for it in vain for 30 s.
        card = f"02:00:0a:4d:00:{self.number:02x}"
        _run(
            *("ip", "link", "add", self._outside, "type", "veth", "peer", "name", "eth0"),
            *("address", card, "netns", str(self._init)),
        )
        _run("ip", "link", "set", self._outside, "master", BRIDGE, "up")
        inside = ("nsenter", "--target", str(self._init), "--net", "ip")
        _run(*inside, "link", "set", "lo", "up")
        _run(*inside, "address", "add", f"{self.address}/24", "dev", "eth0")
        _run(*inside, "link", "set", "eth0", "up")
        _run(*inside, "route", "add", "default", "via", GATEWAY)

    def command(self, line: str) -> list[str]:
        """What a person types who has logged in, as a command of this machine."""
        return [
            *("nsenter", "--target", str(self._init)),
            *("--mount", "--pid", "--net", "--uts", "--ipc", "--"),
            *("env", "-i", f"HOME={self.home}", "LANG=C.UTF-8"),
            "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            *("bash", "-c", f"cd ~; {line}"),
        ]

    def run(self, line: str, limit_s: float = 180.0) -> str:
        """What it printed; its whole output when it fails."""
        done = subprocess.run(
            self.command(line), capture_output=True, text=True, timeout=limit_s, check=False
        )
        assert done.returncode == 0, f"{self.name}: {line}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def spawn(self, name: str, line: str) -> None:
        """A server, which ends with the host; what it says goes to `NAME.log`. It is killed by
        `kill(name)`."""
        log = self.folder / f"{name}.log"
        pid = self.folder / f"{name}.pid"
        self.run(f"setsid {line} >> {log} 2>&1 < /dev/null & echo $! > {pid}")

    def kill(self, name: str) -> None:
        """kill -9 of a server."""
        self.run(f"kill -9 $(cat {self.folder}/{name}.pid)")

    def die(self) -> None:
        """Power off: every process at once, and the card."""
        if self._outer is not None and self._outer.poll() is None:
            os.kill(self._init, signal.SIGKILL)
            self._outer.wait(START_LIMIT_S)
        self._unplug()

    def cut(self) -> None:
        """The cable is pulled; everything on the host goes on."""
        _run("ip", "link", "set", self._outside, "down")

    def heal(self) -> None:
        _run("ip", "link", "set", self._outside, "up")


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
