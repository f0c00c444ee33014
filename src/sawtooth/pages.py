"""Pages that load nothing: the Content-Security-Policy in each says so to the browser, and which scripts are its own.

What a study or capture is named reaches a page as text; a script that came in with it would not run, and nothing could
be sent anywhere.
"""

from __future__ import annotations

import base64
import hashlib
import re

_SCRIPT = re.compile(r"<script(?P<attributes>[^>]*)>(?P<body>.*?)</script>", re.DOTALL)
_MARK = '<meta charset="utf-8">'
# Data and blobs are of the page itself: pictures in it, pictures to be saved, packed columns.
_POLICY = (
    "default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data: blob:; connect-src data:; "
    "font-src 'none'; object-src 'none'; base-uri 'none'; form-action 'none'"
)


def sealed(html: str) -> str:
    """The page with its policy, behind ``<meta charset="utf-8">``: its own scripts by their digests, and no network."""
    # A browser sees line ends as \n, and digests those.
    html = html.replace("\r\n", "\n").replace("\r", "\n")
    digests = []
    for script in _SCRIPT.finditer(html):
        if "application/json" not in script["attributes"]:
            digest = base64.b64encode(hashlib.sha256(script["body"].encode()).digest()).decode()
            digests.append(f"'sha256-{digest}'")
    policy = _POLICY.format(scripts=" ".join(dict.fromkeys(digests)) or "'none'")
    before, mark, after = html.partition(_MARK)
    if not mark:
        raise ValueError(f"a page without {_MARK}")
    return f'{before}{mark}\n<meta http-equiv="Content-Security-Policy" content="{policy}">{after}'
