"""Pages that load nothing: each has a Content-Security-Policy that tells the browser so, and lists its own scripts.

Names of studies and captures reach a page as text. A script inside one would not run, and nothing could be sent
anywhere.
"""

from __future__ import annotations

import base64
import hashlib
import re

_SCRIPT = re.compile(r"<script(?P<attributes>[^>]*)>(?P<body>.*?)</script>", re.DOTALL)
_MARK = '<meta charset="utf-8">'
# Data and blobs belong to the page: pictures in it, pictures to save, packed columns.
_POLICY = (
    "default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data: blob:; connect-src data:; "
    "font-src 'none'; object-src 'none'; base-uri 'none'; form-action 'none'"
)


def sealed(html: str) -> str:
    """The page with its policy after ``<meta charset="utf-8">``: its own scripts by digest, and no network."""
    # A browser sees line ends as \n, and computes digests of that.
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
