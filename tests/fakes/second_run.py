"""`--second-run`: up to three failed tests, but no `law`, run again alone, and are flaky if they pass."""

import subprocess
import sys
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

AT_MOST = 3
_FLAKY = "flaky"
_TIMES_OUT_SECONDS = 900.0
"""The seconds for a second run that its own time limit does not end."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--second-run", action="store_true", help="run failed tests once more, each alone")


# After pytest-randomly, which chooses the seed.
@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Register the watch of reports in xdist's controller, or in the only process."""
    if config.getoption("second_run") and not hasattr(config, "workerinput"):
        seed = config.getoption("randomly_seed", default=None)
        config.pluginmanager.register(SecondRun(config.rootpath, seed), "second-run")


@dataclass
class SecondRun:
    """The failures of a run, and the results of their second runs."""

    root: Path
    seed: int | None
    failures: dict[str, list[pytest.TestReport]] = field(default_factory=dict)
    """The failed reports by test: of a call, a set-up, a teardown, or a dead process of xdist."""
    outputs: dict[str, str] = field(default_factory=dict)
    """The output of pytest for each test that did not pass alone."""
    flaky: list[str] = field(default_factory=list)
    _collected: bool = True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failures.setdefault(report.nodeid, []).append(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._collected = self._collected and not report.failed

    # Innermost, so that the coverage check comes after it and can still fail the run.
    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        result = yield
        if self._collected and len(self.failures) <= AT_MOST:
            for test in self.failures:
                self._run_alone(test)
            if len(self.flaky) == len(self.failures):
                session.testsfailed = 0
            self._count_as_flaky(session.config.pluginmanager.getplugin("terminalreporter"))
        return result

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if len(self.failures) > AT_MOST:
            terminalreporter.section(f"no second run: more than {AT_MOST} tests failed")
        for test, output in self.outputs.items():
            terminalreporter.section(f"second run of {test}: not passed", sep="_")
            terminalreporter.line(output)
        if self.flaky:
            terminalreporter.section("flaky: failed, then passed alone", yellow=True)
        for report in (report for test in self.flaky for report in self.failures[test]):
            terminalreporter._outrep_summary(report)
        for test in self.flaky:
            terminalreporter.line(f"FLAKY {test} (seed {self.seed})", yellow=True)

    def _run_alone(self, test: str) -> None:
        seed = [] if self.seed is None else [f"--randomly-seed={self.seed}"]
        quiet = ["-qq", "-rs", "-p", "no:cacheprovider"]  # without a closing line
        argv = [sys.executable, "-m", "pytest", *quiet, *seed, "-m", "not law", test]
        try:
            ended = subprocess.run(
                argv, cwd=self.root, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True, errors="replace", timeout=_TIMES_OUT_SECONDS, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            self.outputs[test] = f"It did not end within {_TIMES_OUT_SECONDS:.0f} s."
            return
        if ended.returncode == pytest.ExitCode.OK and "SKIPPED [" not in ended.stdout:
            self.flaky.append(test)
        elif ended.returncode == pytest.ExitCode.NO_TESTS_COLLECTED:
            self.outputs[test] = "It holds a law, and is not run again."
        else:
            self.outputs[test] = ended.stdout

    def _count_as_flaky(self, reporter: pytest.TerminalReporter | None) -> None:
        """Let the closing line count a flaky test as flaky only."""
        if reporter is None or not self.flaky:
            return
        for outcome in ("passed", "failed", "error"):
            others = [report for report in reporter.stats.pop(outcome, ()) if report.nodeid not in self.flaky]
            if others:
                reporter.stats[outcome] = others
        reporter.stats[_FLAKY] = [self.failures[test][0] for test in self.flaky]
        reporter._main_color = None  # pytest computes it anew
