"""`binloom --install-completion` and `--show-completion`, and what a shell gets when somebody presses TAB."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from binloom.commands import completion
from ingest.errors import UsageError
from tests.support.command_line import COMMAND, binloom
from tests.support.places import PROJECT


def pressed_tab(line: str, shell: str = "bash") -> "subprocess.CompletedProcess[str]":
    """Return what the script of a shell gets for the words of a line; the last word is not complete."""
    asked = {
        "_BINLOOM_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split(" ")) - 1),
        "_TYPER_COMPLETE_ARGS": line,
    }
    return binloom(env=asked)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("binloom hi", ["history"]),
        ("binloom und", ["undo"]),
        ("binloom --v", ["--version"]),
        ("binloom undo --again", ["--against"]),
        ("binloom decode --format ", ["csv", "json"]),
        ("binloom nothing-like-it", []),
    ],
)
def test_tab_gives_commands_options_and_values(line: str, words: list[str]) -> None:
    result = pressed_tab(line)
    assert (result.returncode, result.stderr) == (0, "")
    assert set(words) <= set(result.stdout.split()) and bool(result.stdout.split()) == bool(words)


@pytest.mark.parametrize("option", ["--version", "--show-completion", "--install-completion"])
def test_tab_runs_no_option_that_is_there_already(option: str, tmp_path: Path) -> None:
    asked = {"_BINLOOM_COMPLETE": "complete_bash", "COMP_WORDS": f"binloom {option} hi", "COMP_CWORD": "2"}
    result = binloom(env={**asked, "HOME": str(tmp_path), "SHELL": "/bin/bash"})
    assert (result.returncode, result.stdout.split()) == (0, ["history"])
    assert list(tmp_path.iterdir()) == []


def test_zsh_gets_the_descriptions_too() -> None:
    assert '"undo":"Print SQL that takes back what filters select."' in pressed_tab("binloom und", "zsh").stdout


def test_bash_completes_with_the_printed_script() -> None:
    bash = shutil.which("bash")
    assert bash is not None, "the tests need bash, as make does"
    script = binloom("--show-completion", env={"SHELL": bash}).stdout
    line = "COMP_WORDS=(binloom tra); COMP_CWORD=1; _binloom_completion binloom; printf '%s\\n' \"${COMPREPLY[@]}\""
    path = f"{Path(COMMAND[0]).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [bash, "--norc", "-c", f"{script}\n{line}"],
        env={**os.environ, "PATH": path},
        cwd=PROJECT,
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == ("transactions\n", "")


@pytest.mark.parametrize(
    ("shell", "script", "reader"),
    [
        ("/bin/bash", ".bash_completions/binloom.sh", ".bashrc"),
        ("/usr/bin/zsh", ".zfunc/_binloom", ".zshrc"),
        ("fish", ".config/fish/completions/binloom.fish", None),
    ],
)
def test_the_script_is_installed_for_the_shell_of_the_user(
    shell: str, script: str, reader: str | None, tmp_path: Path
) -> None:
    if reader:
        (tmp_path / reader).write_text("# mine\n")
    for _ in range(2):
        result = binloom("--install-completion", env={"SHELL": shell, "HOME": str(tmp_path)})
        assert result.returncode == 0, result.stderr
        assert result.stdout.startswith(f"Completion for {Path(shell).name} is in {tmp_path / script}")
    shown = binloom("--show-completion", env={"SHELL": shell}).stdout
    assert (tmp_path / script).read_text().strip() == shown.strip()
    if reader:
        lines = (tmp_path / reader).read_text().splitlines()
        assert (
            lines[0] == "# mine" and len([line for line in lines if "completions" in line or "compinit" in line]) == 1
        )
    assert (tmp_path / script).stat().st_mode & 0o777 == 0o666, "it is the user's file, with the user's umask"


def test_a_shell_that_has_no_completion_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completion, "_get_shell_name", lambda: "dash")
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    with pytest.raises(UsageError, match=r"bash, zsh and fish, but SHELL is tcsh\. Name the shell: SHELL=bash"):
        completion.users_shell()
    monkeypatch.delenv("SHELL")
    with pytest.raises(UsageError, match="but SHELL is not set"):
        completion.users_shell()


def test_the_shell_around_counts_where_the_variable_names_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completion, "_get_shell_name", lambda: "fish")
    monkeypatch.delenv("SHELL", raising=False)
    assert completion.users_shell() == "fish"
    monkeypatch.setenv("SHELL", "/bin/zsh")
    assert completion.users_shell() == "zsh"


def test_a_command_does_not_load_completion() -> None:
    script = (
        "import sys; from binloom.cli import app; from binloom.commands.running import run_app\n"
        "run_app(app, ['status', '--help'])\n"
        "print('binloom.commands.completion' in sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=PROJECT, capture_output=True, text=True)
    assert done.stderr == "False\n"
