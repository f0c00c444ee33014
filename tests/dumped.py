"""Renders a page with headless Chromium, without a driver."""

import subprocess
from pathlib import Path


def dumped(chromium: str, page: Path, *more: str) -> tuple[str, str]:
    """The page's document after its scripts ran, and the browser's console; ``more`` adds options."""
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--virtual-time-budget=8000"]
    done = subprocess.run(
        [chromium, *options, *more, f"--user-data-dir={page.parent}/chromium", "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.stdout, "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)
