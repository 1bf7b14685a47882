"""The secret key of a one-machine install: made once, kept beside the data."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from platform_site.embedded.layout import make_folder

FILE_NAME = "secret_key"


def stored_secret_key(data_dir: Path) -> str:
    """The key in ``data_dir``, made at the first call; whoever is first wins, every process reads the same.

    Raises OSError where the folder cannot be written.
    """
    path = data_dir / FILE_NAME
    if not path.exists():
        make_folder(data_dir)
        draft = path.with_name(f"{FILE_NAME}.new-{os.getpid()}")
        draft.unlink(missing_ok=True)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(64))
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)  # never replaces: a second starter keeps the first one's key
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return path.read_text(encoding="ascii").strip()
