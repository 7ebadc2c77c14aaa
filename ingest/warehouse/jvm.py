"""The Java process of a Spark session: which Java, its options, its start and its end.

binloom starts it without pyspark's shell scripts. It is ready two seconds sooner, it starts while files are being
scanned, and its output goes to a log file.
"""

import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from ingest.errors import JavaMissingError, StoreError
from ingest.warehouse.masters import is_local
from ingest.warehouse.privacy import private_opener, private_umask
from ingest.warehouse.settings_file import settings_file, users_settings

JAVA_NEEDED = 17
START_SECONDS = 600.0
END_SECONDS = 30.0
# In the environment that contains the jars of these classes. Written by `ingest.landing.class_archive`.
CLASS_ARCHIVE = Path(sys.prefix) / "spark-classes.jsa"

JAVA_HINT = (
    "Install a Java runtime, version 17 or newer, and try again: `apt-get install openjdk-17-jre-headless` on Debian "
    "or Ubuntu, `dnf install java-17-openjdk-headless` on Fedora or RHEL, `brew install openjdk@17` on macOS; "
    "or set JAVA_HOME to one."
)

# The options that Spark's own launcher gives a JVM of version 17, without the incubator module for linear algebra.
_JVM_OPTIONS = [
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(
        f"--add-opens=java.base/{package}=ALL-UNNAMED"
        for package in (
            "java.lang",
            "java.lang.invoke",
            "java.lang.reflect",
            "java.io",
            "java.net",
            "java.nio",
            "java.util",
            "java.util.concurrent",
            "java.util.concurrent.atomic",
            "jdk.internal.ref",
            "sun.nio.ch",
            "sun.nio.cs",
            "sun.security.action",
            "sun.util.calendar",
        )
    ),
    "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    "-Djdk.reflect.useDirectMethodHandle=false",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--enable-native-access=ALL-UNNAMED",
    "-Dderby.connection.requireAuthentication=false",
]

# A JVM that lives for seconds spends half of its processor time on optimising code that it hardly runs. Without the
# optimiser the JVM reserves less memory for compiled code: too little for a whole `dbt build`, so the size is set.
SHORT_LIVED_OPTIONS = ["-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m"]

# The process that tests share lives long, but the environment of the tests has SHORT_LIVED_OPTIONS. The first is Java's
# default again: an option of the command line counts more than one of the environment. Code is optimised six times
# later than by default: the optimiser took a fifth of the process otherwise. Derby collects the whole heap twice when a
# session closes it, and the next session of the process would wait for that.
_LONG_LIVED_OPTIONS = [
    "-XX:TieredStopAtLevel=4",
    "-XX:Tier4InvocationThreshold=30000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=60000",
    "-XX:Tier4BackEdgeThreshold=200000",
    "-XX:+DisableExplicitGC",
]

# A full space for new objects is collected, and so is the space of classes before it grows. Both are small at first:
# Spark fills the one twice a second, and loads 200 MB of classes.
_SPACE_OPTIONS = ["-XX:NewSize=512m", "-XX:MetaspaceSize=256m"]


def find_java() -> Path:
    """Return the `java` that Spark will run on.

    Raises
    ------
    JavaMissingError
        There is no Java, or it is older than version 17.
    """
    java_home = os.environ.get("JAVA_HOME")
    found = str(Path(java_home) / "bin" / "java") if java_home else shutil.which("java")
    if not found or not os.access(found, os.X_OK):
        where = f"JAVA_HOME is {java_home}, but there is no {found}" if java_home else "no `java` is on the PATH"
        raise JavaMissingError(f"Spark needs Java {JAVA_NEEDED} or newer: {where}.", hint=JAVA_HINT)
    version = _java_version(Path(found))
    if version is None:
        raise JavaMissingError(f"{found} does not run: `java -version` printed no version.", hint=JAVA_HINT)
    if version < JAVA_NEEDED:
        raise JavaMissingError(f"{found} is Java {version}, but Spark needs {JAVA_NEEDED} or newer.", hint=JAVA_HINT)
    return Path(found)


def _java_version(java: Path) -> int | None:
    # Reading the release file takes a millisecond, starting the JVM takes a hundred.
    release = java.resolve().parent.parent / "release"
    try:
        text = release.read_text(errors="replace")
        pattern = r'JAVA_VERSION="(\d+)(?:\.(\d+))?'
    except OSError:
        try:
            text = subprocess.run([str(java), "-version"], capture_output=True, text=True, timeout=120).stderr
        except (OSError, subprocess.TimeoutExpired):
            return None
        pattern = r'version "(\d+)(?:\.(\d+))?'
    match = re.search(pattern, text)
    if not match:
        return None
    major = int(match.group(1))
    return int(match.group(2) or 0) if major == 1 else major


class Jvm:
    """A Java process for Spark, which is starting.

    Parameters
    ----------
    java
        The program: see `find_java`.
    settings
        Spark's settings by name.
    home
        Folder whose `tmp/` and `logs/` the process uses.
    short_lived
        Tune the process for a command that runs for seconds.
    classes_into
        File that the process dumps its classes to when it ends: see `ingest.landing.class_archive`.
    """

    # Tests set this: Java code runs several times faster in a process that has run it before.
    outlives_sessions: ClassVar[bool] = False
    _kept: ClassVar["Jvm | None"] = None

    def __init__(
        self,
        java: Path,
        settings: Mapping[str, str],
        home: Path,
        *,
        short_lived: bool,
        classes_into: Path | None = None,
    ) -> None:
        self._home = home
        # Java reads them from the user's file, so that a password is not on the command line.
        users, users_file = users_settings(), settings_file()
        self._wants_classes = classes_into is not None
        self._folder = tempfile.mkdtemp(prefix="jvm-", dir=home / "tmp")
        command = [
            *java_command(java, settings["spark.driver.memory"], settings.get("spark.driver.extraClassPath")),
            *(_LONG_LIVED_OPTIONS if self.outlives_sessions else SHORT_LIVED_OPTIONS if short_lived else []),
            *(["-XX:+UseSerialGC"] if short_lived or self.outlives_sessions else []),
            *_SPACE_OPTIONS,
            *class_options(classes_into),
            # Paths may contain blanks, so the options cannot be passed as one string in a setting.
            *(option for option in re.split(r" (?=-D)", settings["spark.driver.extraJavaOptions"])),
            "org.apache.spark.deploy.SparkSubmit",
            *(part for key, value in settings.items() if key not in users for part in ("--conf", f"{key}={value}")),
            *(["--properties-file", str(users_file)] if users_file is not None else []),
            "pyspark-shell",
        ]
        environment = {
            **os.environ,
            "SPARK_HOME": str(spark_folder()),
            "SPARK_CONNECT_MODE": "0",
            **({"SPARK_LOCAL_IP": "127.0.0.1"} if is_local(settings["spark.master"]) else {}),
            "_PYSPARK_DRIVER_CONN_INFO_PATH": f"{self._folder}/connection",
        }
        with open(home / "logs" / "jvm.log", "wb", opener=private_opener) as log:
            # The process ends when its standard input is closed, that is when this process ends for any reason.
            # It has its own process group, so that Ctrl-C reaches it through Spark and not as a signal.
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=environment,
                process_group=0,
                umask=private_umask(),
            )
        if self.outlives_sessions and not self._wants_classes:
            Jvm._kept = self

    def connect(self) -> None:
        """Wait until the process answers; pyspark then uses it for the next context.

        Raises
        ------
        StoreError
            The process has ended, or did not answer in ten minutes.
        """
        from pyspark import SparkContext

        path = Path(self._folder) / "connection"
        until = time.monotonic() + START_SECONDS
        while not path.exists():
            if self._process.poll() is not None or time.monotonic() > until:
                log = self._home / "logs" / "jvm.log"
                raise StoreError(
                    f"The Java process for Spark did not start: {last_line(log)}", hint=f"Its output is in {log}."
                )
            time.sleep(0.01)
        with path.open("rb") as connection:
            port, size = struct.unpack(">ii", connection.read(8))
            secret = connection.read(size).decode()
        shutil.rmtree(self._folder, ignore_errors=True)
        os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"] = str(port), secret
        try:
            SparkContext._ensure_initialized()
        finally:
            del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]

    @property
    def is_kept(self) -> bool:
        """Whether the next session of this process uses it too."""
        return Jvm._kept is self

    def end(self) -> None:
        """End the process; wait until it has ended, so that it no longer holds the metastore."""
        from pyspark import SparkContext

        gateway = SparkContext._gateway
        if gateway is None:
            # The process was not used yet: no orderly shutdown is needed.
            self._process.kill()
        else:
            gateway.shutdown()
            # The next session of this process must start a new Java process.
            SparkContext._gateway = SparkContext._jvm = None
            assert self._process.stdin is not None
            self._process.stdin.close()
        try:
            self._process.wait(timeout=None if self._wants_classes else END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)
        if self.is_kept:
            Jvm._kept = None

    @classmethod
    def end_kept(cls) -> None:
        """End the process that outlives its sessions, if there is one."""
        if cls._kept is not None:
            cls._kept.end()


def java_command(java: Path, memory: str, further_classes: str | None = None) -> list[str]:
    """Return the beginning of a command that runs a class of Spark, as Spark's scripts begin it."""
    home = spark_folder()
    # Java uses an archive of classes only with the class path that it was written with.
    first = sorted(home.glob("jars/slf4j-api-*.jar"))
    further = [further_classes] if further_classes else []
    class_path = ":".join(map(str, [home / "conf", *first, home / "jars" / "*", *further]))
    return [str(java), "-cp", class_path, f"-Xmx{memory}", *_JVM_OPTIONS]


def spark_folder() -> Path:
    """Return the folder of Spark's jars and scripts, in the wheel of pyspark."""
    import pyspark

    return Path(pyspark.__file__).parent


def runs_in_this_process() -> bool:
    """Whether pyspark already has a Java process, for example that of a session which was stopped."""
    from pyspark import SparkContext

    return SparkContext._gateway is not None


def class_options(classes_into: Path | None = None) -> list[str]:
    """Return the options that use the archive of classes if it exists, or write it when the process ends."""
    if classes_into is not None:
        return [f"-XX:ArchiveClassesAtExit={classes_into}"]
    return [f"-XX:SharedArchiveFile={CLASS_ARCHIVE}"] if CLASS_ARCHIVE.exists() else []


def last_line(path: Path) -> str:
    """Return the last line of what a process printed into a file, or a sentence if there is none."""
    try:
        lines = [line for line in path.read_text(errors="replace").splitlines() if line.strip()]
    except OSError:
        lines = []
    return lines[-1] if lines else "it printed nothing."
