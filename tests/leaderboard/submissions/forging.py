"""What forged submissions are made of."""

import io
import zipfile
from pathlib import Path

from theorybench.leaderboard.submissions.bundle import Bundle
from theorybench.leaderboard.submissions.checking import check

ESCAPE, BIDI, HTML = "\x1b[2Jx", "rlvr‮", "<script>alert(1)</script>"
DEEP = "[" * 100_000 + "]" * 100_000


class Touch:
    """Unpickled, it leaves a file behind."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return Path.touch, (Path(self.path),)


def zipped(pairs, compression=zipfile.ZIP_STORED, change=lambda info: None, comment=b""):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, data in pairs:
            info = zipfile.ZipInfo(name)
            info.compress_type = compression
            change(info)
            archive.writestr(info, data)
        archive.comment = comment
    return file.getvalue()


def refused(parts, name, path, sign=True):
    """The reason why the entry of a run is refused."""
    found = Bundle(parts.write(path, sign))
    verdict = check(record := next(r for r in found.records if r.key == parts.names[name]), found.policy(record))
    assert verdict.status == "refused", verdict
    return verdict.reason
