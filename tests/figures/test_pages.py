"""Pages of studies, captures and links: they load nothing, name no host, and work under the policy that enforces it."""

import base64
import hashlib
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dumped import dumped
from fake_engine import quick
from sawtooth.capture.page import write_page
from sawtooth.figures.content_security import sealed
from sawtooth.link_estimate import RttSeries
from sawtooth.link_estimate.model import CongestionModel
from sawtooth.link_estimate.report import Assumed
from sawtooth.link_estimate.report import write_report as write_link
from sawtooth.report import write_report
from tests.capture.test_capture_pictures import transfer

pytestmark = pytest.mark.usefixtures("patience")

POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">')
HOST = re.compile(r"https?://([A-Za-z0-9.-]+)")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One page of each kind."""
    home = tmp_path_factory.mktemp("pages")
    sent_s = np.arange(1000) * 0.1
    rtt_s = 0.02 + np.random.default_rng(1).random(1000) * 0.005
    link = RttSeries(sent_s, rtt_s, 0.1, "x", label="link")
    return {
        "study": write_report(quick(out=home / "out")),
        "capture": write_page(transfer(), home / "capture.html"),
        "link": write_link([link], home / "link", CongestionModel.default(), Assumed(0.02, None)),
    }


@pytest.mark.parametrize("kind", ["study", "capture", "link"])
def test_a_page_has_a_policy_that_lets_nothing_in_but_its_own_scripts(pages: dict[str, Path], kind: str) -> None:
    html = pages[kind].read_text()
    (policy,) = POLICY.findall(html)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert not {word for rule in rules.values() for word in rule.split()} & {"*", "http:", "https:", "'unsafe-eval'"}
    assert "unsafe" not in rules["script-src"]
    scripts = re.findall(r"<script(?![^>]*application/json)[^>]*>(.*?)</script>", html, re.DOTALL)
    digests = {f"'sha256-{base64.b64encode(hashlib.sha256(one.encode()).digest()).decode()}'" for one in scripts}
    assert set(rules["script-src"].split()) == (digests or {"'none'"})
    assert html.index("Content-Security-Policy") < html.index("<title>")


@pytest.mark.parametrize("kind", ["study", "capture", "link"])
def test_a_page_names_no_host(pages: dict[str, Path], kind: str) -> None:
    # Addresses at w3.org are names of XML vocabularies, and nothing fetches them.
    assert set(HOST.findall(pages[kind].read_text())) <= {"www.w3.org"}
    assert 'src="//' not in pages[kind].read_text()


def test_a_page_without_a_place_for_its_policy_is_a_defect() -> None:
    with pytest.raises(ValueError, match="charset"):
        sealed("<html></html>")


class TestInChromium:
    """How a browser renders the pages, and its console."""

    @pytest.mark.parametrize(
        ("kind", "drawn"), [("study", 'class="u-over"'), ("capture", "400 segments"), ("link", "uplot")]
    )
    def test_a_page_is_drawn_and_breaks_no_rule_of_its_own(
        self, chromium: str, pages: dict[str, Path], kind: str, drawn: str
    ) -> None:
        document, console = dumped(chromium, pages[kind])
        assert drawn in document
        assert console == ""

    @pytest.mark.parametrize("kind", ["capture", "link"])
    def test_nothing_is_wider_than_a_phone(self, chromium: str, pages: dict[str, Path], kind: str) -> None:
        # A browser's own window is at least 500 pixels wide.
        frame = pages[kind].with_name(f"{kind}-at-390.html")
        frame.write_text(
            f'<iframe src="{pages[kind].name}" style="width: 390px; height: 800px; border: 0"></iframe><script>'
            "onload = () => setTimeout(() => { const found = frames[0].document.documentElement;"
            "document.body.dataset.beyond = found.scrollWidth - found.clientWidth; }, 1500)</script>"
        )
        document, _ = dumped(chromium, frame, "--allow-file-access-from-files")
        assert 'data-beyond="0"' in document

    def test_a_script_that_came_in_does_not_run_and_nothing_is_asked_for(
        self, chromium: str, pages: dict[str, Path]
    ) -> None:
        page = pages["capture"].with_name("hostile.html")
        hostile = '<script>document.body.dataset.owned = 1</script><img src="http://127.0.0.1:9/x" onerror="alert(1)">'
        page.write_text(pages["capture"].read_text().replace("</body>", hostile + "</body>"))
        document, console = dumped(chromium, page)
        assert "data-owned" not in document
        assert console.count("Content Security Policy") >= 2


def test_matplotlib_says_nothing_where_no_directory_is_to_be_written(tmp_path: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        # The message appears at once, without the five seconds that it would wait on a slow machine.
        "import threading\nlater = threading.Timer\nthreading.Timer = lambda seconds, call: later(0, call)\n"
        "from pathlib import Path\nfrom fake_engine import quick\nfrom sawtooth.report import write_report\n"
        "write_report(quick(out=Path(sys.argv[2])))"
    )
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = {
        **{"PATH": "/usr/bin:/bin", "TMPDIR": str(temporary)},
        **{"HOME": "/proc/none", "XDG_CONFIG_HOME": "/proc/none", "XDG_CACHE_HOME": "/proc/none"},
    }
    command = [sys.executable, "-c", code, str(Path(__file__).parents[1]), str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert list(temporary.iterdir()) == []
