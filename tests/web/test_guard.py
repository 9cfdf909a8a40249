"""Who is let in, and what is refused: tokens, hosts, pages of elsewhere, sizes and names of files."""

from __future__ import annotations

import json
import re
import zipfile
from io import BytesIO
from pathlib import Path
from urllib.parse import quote

import pytest

from sfumato.core.errors import TableError
from sfumato.web.visit import safe_name
from tests.web.asking import HOST, PORT, TOKEN, Asking

LOOK = {
    "rows": 3,
    "read": "CSV with commas as delimiter.",
    "sheets": [],
    "csv": True,
    "encoding": "utf-8",
    "header_row": 1,
    "detected": False,
    "columns": [
        {
            "name": "<script>alert(1)</script>",
            "role": "confidential",
            "kind": "integer",
            "domain": "observed",
            "fate": "sanitized",
            "why": "whole numbers",
            "hierarchy": "",
            "coarsened": 0,
            "offered": [],
            "first_values": ["1"],
            "known": False,
            "known_level": 0,
            "leveled": False,
        }
    ],
    "rules": [],
    "found": [],
    "schema": "format = 1\n",
}
GETS = (
    "/",
    "/columns",
    "/policy",
    "/search",
    "/result",
    "/report",
    "/tuning",
    "/release.zip",
    "/owner.zip",
    "/api/job",
)
POSTS = ("/api/look", "/api/choices", "/api/search", "/api/release", "/api/stop", "/api/save", "/api/forget")


@pytest.fixture
def asking(tmp_path: Path) -> Asking:
    return Asking(tmp_path, result=LOOK).enter()


@pytest.mark.parametrize("path", [*GETS, "/static/web.js", "/nothing"])
def test_nothing_is_shown_without_the_token(path: str, tmp_path: Path) -> None:
    asking = Asking(tmp_path, result=LOOK)
    for given in (path, f"{path}?token=", f"{path}?token=wrong", f"{path}?token={TOKEN[:-1]}"):
        answer = asking.ask("GET", given)
        assert answer.status == 403
        assert "set-cookie" not in answer.headers
        assert b"columns" not in answer.body.lower()


@pytest.mark.parametrize("path", [*POSTS, "/api/file?name=a.csv"])
def test_nothing_is_done_without_cookie_and_page(path: str, asking: Asking) -> None:
    cookie = asking.cookie
    for headers in (
        {"cookie": ""},
        {"cookie": f"sfumato-web-{PORT}=wrong"},
        {"x_sfumato_page": ""},
        {"x_sfumato_page": "wrong"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
        {"origin": "http://127.0.0.1:9"},
        {"origin": "null"},
    ):
        answer = asking.ask("POST", path, b"{}", **{"cookie": cookie, **headers})
        assert answer.status == 403, headers
        assert re.fullmatch(r"[^\n]{10,200}", answer.error)
    assert asking.worker.orders == []
    assert list(asking.visit.folder.iterdir()) == []


@pytest.mark.parametrize(
    "host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:1", f"0.0.0.0:{PORT}", ""]
)
def test_a_name_that_was_made_to_point_here_is_refused(host: str, asking: Asking) -> None:
    for path in ("/", f"/?token={quote(TOKEN)}", "/api/job"):
        assert asking.ask("GET", path, host=host).status == 421
    assert asking.ask("GET", "/", host=HOST.replace("127.0.0.1", "localhost")).status == 200


def test_the_cookie_is_of_this_site_and_hidden_from_scripts_and_the_token_leaves_the_address(asking: Asking) -> None:
    answer = asking.ask("GET", f"/?token={quote(TOKEN)}")
    assert answer.status == 303
    assert answer.headers["location"] == "/"
    assert re.search(r"; Path=/; HttpOnly; SameSite=Strict$", answer.headers["set-cookie"])
    assert TOKEN not in answer.headers["set-cookie"]


@pytest.mark.parametrize("path", ["/", "/columns", "/policy", "/search"])
def test_no_page_runs_what_is_not_its_own_script(path: str, asking: Asking) -> None:
    asking.ask("POST", "/api/file?name=a.csv", b"a,b\n1,2\n")
    asking.visit.points.append({"method": "chain", "size": 80})
    answer = asking.ask("GET", path)
    assert answer.status == 200
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'; script-src 'self';" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    text = answer.body.decode()
    assert "<script>alert" not in text
    assert not re.search(r"<script(?![^>]*src=\"/static/)", text)
    assert not re.search(r"\son\w+=|\sstyle=|https?://", text)
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["referrer-policy"] == "no-referrer"


def test_a_file_that_is_too_large_is_refused_before_it_is_read_and_while_it_comes(asking: Asking) -> None:
    told = asking.ask("POST", "/api/file?name=a.csv", b"", content_length="1001")
    lied = asking.ask("POST", "/api/file?name=a.csv", [b"a,b\n"] * 500, content_length="5")
    endless = asking.ask("POST", "/api/file?name=a.csv", b"", content_length="9" * 4_000)
    for answer in (told, lied, endless):
        assert answer.status == 413
        assert "larger than 0 MB" in answer.error
    assert list(asking.visit.folder.iterdir()) == []
    assert asking.visit.file is None


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("../../../etc/passwd.csv", "passwd.csv"),
        ("..\\..\\boot.csv", "boot.csv"),
        ("/etc/x.csv", "x.csv"),
        (".csv", "table.csv"),
        ("-rf.csv", "rf.csv"),
        ("a\x00\n\x1b[2J\u202eb.csv", "a[2Jb.csv"),
        ("x" * 500 + ".csv.gz", "x" * 80 + ".csv.gz"),
        ("caf\u00e9 'n' $(id).CSV", "caf\u00e9 'n' $(id).CSV"),
    ],
)
def test_a_file_lies_in_the_folder_whatever_it_is_called(name: str, kept: str, asking: Asking) -> None:
    answer = asking.ask("POST", f"/api/file?name={quote(name)}", b"a,b\n1,2\n")
    assert answer.status == 200
    assert [path.name for path in asking.visit.folder.iterdir()] == [kept]
    assert (asking.visit.folder / kept).stat().st_mode & 0o777 == 0o600
    assert asking.worker.orders[-1]["file"] == kept


def test_how_a_file_is_written_can_be_told_with_it(asking: Asking) -> None:
    reading = {"encoding": "cp1252", "delimiter": "\t", "decimal": None, "sheet": None, "header_row": 2}
    chosen = json.dumps({"reading": reading, "missing": ["999", "k.A."], "policy": "public"})
    asking.ask("POST", f"/api/file?name=a.csv&choices={quote(chosen)}", b"a\tb\n1\t2\n")
    choices = asking.worker.orders[-1]["choices"]
    assert (choices["reading"], choices["missing"]) == (reading, ["999", "k.A."])
    assert choices["policy"] == "research"  # all else is chosen on the page


@pytest.mark.parametrize("chosen", ["{", '{"reading": {"header_row": "3"}}', '{"missing": 999}', "9" * 20_000])
def test_choices_with_a_file_that_cannot_be_used_are_refused(asking: Asking, chosen: str) -> None:
    answer = asking.ask("POST", f"/api/file?name=a.csv&choices={quote(chosen)}", b"a,b\n1,2\n")
    assert (answer.status, list(asking.visit.folder.iterdir())) == (400, [])


def test_marks_without_number_are_refused(asking: Asking) -> None:
    chosen = json.dumps({"missing": [str(number) for number in range(60)]})
    assert (
        "60 missing values are more than 50"
        in asking.ask("POST", f"/api/file?name=a.csv&choices={quote(chosen)}", b"a,b\n1,2\n").error
    )


@pytest.mark.parametrize("name", ["", "a", "a.exe", "a.csv/", "a.csv.html", "a.py", ".."])
def test_a_file_of_no_known_kind_is_refused_in_the_words_of_the_command_line(name: str, asking: Asking) -> None:
    answer = asking.ask("POST", f"/api/file?name={quote(name)}", b"a,b\n1,2\n")
    assert answer.status == 400
    assert "is not a file of a known kind; known endings are .csv" in answer.error
    with pytest.raises(TableError, match="known endings"):
        safe_name(name)


BAD = [
    b"",
    b"[" * 50_000,
    b'{"policy": "research", "policy": "public"}',
    b'{"holdout": NaN}',
    b'{"k": 1e400}',
    json.dumps({"unknown": 1}).encode(),
    json.dumps({"policy": "/etc/passwd"}).encode(),
    json.dumps({"holdout": 2}).encode(),
    json.dumps({"seed": -1}).encode(),
    json.dumps({"k": True}).encode(),
    json.dumps({"time_limit": 0}).encode(),
    json.dumps({"rules": ["x" * 2_000]}).encode(),
    json.dumps({"columns": [{"name": "a", "role": "king", "kind": "integer"}]}).encode(),
    json.dumps(
        {"columns": [{"name": "a", "role": "public", "kind": "nominal", "hierarchy": "file /etc/passwd"}]}
    ).encode(),
]


@pytest.mark.parametrize("body", BAD, ids=range(len(BAD)))
def test_choices_that_are_none_are_refused_in_one_sentence(body: bytes, asking: Asking) -> None:
    asking.ask("POST", "/api/file?name=a.csv", b"a,b\n1,2\n")
    before = len(asking.worker.orders)
    for path in ("/api/look", "/api/choices"):
        answer = asking.ask("POST", path, body)
        assert answer.status == 400
        assert re.fullmatch(r"[^\n]{10,300}", answer.error)
        assert "passwd" not in answer.error or "policy" in answer.error
    assert len(asking.worker.orders) == before


def test_a_body_without_end_is_refused(asking: Asking) -> None:
    assert asking.ask("POST", "/api/look", [b"x" * (1 << 20)] * 9).status == 413


def test_steps_cannot_be_skipped(asking: Asking) -> None:
    for path, place in (("/columns", "/"), ("/policy", "/"), ("/search", "/policy"), ("/result", "/policy")):
        answer = asking.ask("GET", path)
        assert (answer.status, answer.headers["location"]) == (303, place)
    for path in ("/api/search", "/api/release"):
        assert "no file was chosen" in asking.post(path, {}).error
    assert "--save FOLDER is missing" in asking.post("/api/save", {}).error
    for path in ("/report", "/tuning", "/release.zip", "/owner.zip", "/stream", "/survey", "/static/../app.py"):
        assert asking.ask("GET", path).status == 404
    assert asking.ask("GET", "/api/file").status == 405


def made(asking: Asking) -> None:
    """A release as a run would have written it."""
    asking.ask("POST", f"/api/file?name={quote('../pa tients.csv.gz')}", b"a,b\n1,2\n")
    for part, name in (("release", "table.csv"), ("owner", "report.html")):
        (asking.visit.folder / "out" / part).mkdir(parents=True)
        (asking.visit.folder / "out" / part / name).write_text("<p>a", encoding="utf-8")
    (asking.visit.folder / "out" / "owner").chmod(0o700)
    asking.visit.result = {}


def test_each_zip_holds_its_part_and_nothing_above_it(asking: Asking) -> None:
    made(asking)
    for part, name in (("release", "table.csv"), ("owner", "report.html")):
        answer = asking.ask("GET", f"/{part}.zip")
        assert answer.headers["content-type"] == "application/zip"
        assert answer.headers["content-disposition"] == f'attachment; filename="{part}.zip"'
        with zipfile.ZipFile(BytesIO(answer.body)) as packed:
            assert packed.namelist() == [f"{part}/{name}"]


def test_the_report_runs_no_script_and_is_framed_by_this_page_alone(asking: Asking) -> None:
    made(asking)
    policy = asking.ask("GET", "/report").headers["content-security-policy"]
    assert policy.startswith("default-src 'none';")
    assert policy.endswith("frame-ancestors 'self'; sandbox")


def test_what_is_saved_is_a_new_folder_closed_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "saved").mkdir()
    asking = Asking(tmp_path / "work", result=LOOK, save_to=tmp_path / "saved").enter()
    for expected in ("pa tients", "pa tients-2"):
        made(asking)
        assert json.loads(asking.post("/api/save", {}).body)["saved"] == str(tmp_path / "saved" / expected)
        assert (tmp_path / "saved" / expected / "owner").stat().st_mode & 0o777 == 0o700
        assert (tmp_path / "saved" / expected / "release" / "table.csv").is_file()
        asking.post("/api/forget", {})
    assert list((tmp_path / "work").iterdir()) == []


def test_a_status_page_tells_how_a_stream_stands_and_nothing_else_is_opened(tmp_path: Path) -> None:
    told = {"lines": ["7 records in 1 groups"], "epoch": 2, "k": 5, "families_due": 1}
    asking = Asking(tmp_path, result=told, stream="state.db").enter()
    job = asking.ask("GET", "/stream?state=/etc/passwd")
    assert asking.worker.orders == [{"step": "stream", "state": "state.db"}]
    assert job.status == 200
    assert asking.ask("GET", "/survey").status == 404


@pytest.mark.parametrize("leaves", [True, False])
def test_the_result_says_what_leaves_and_escapes_what_came_from_outside(leaves: bool, asking: Asking) -> None:
    made(asking)
    verdict = {
        "answer": "It may.",
        "heading": 'Meets policy "research"',
        "purpose": "For researchers.",
        "hint": "",
        "left_out": "",
        "outcome": "meets" if leaves else "inconclusive",
        "reasons": ["<b>one</b>"],
        "try": [],
        "none_found": "No setting is known.",
    }
    asking.visit.result = {
        "leaves": leaves,
        "verdict": verdict,
        "utility": "Utility.",
        "risk": "Risk.",
        "aside": "",
        "notes": ["<script>a</script>"],
        "warnings": ["columns were dropped: 1"],
        **(
            {"method": "chain", "rows_in": 7, "rows_out": 7, "holds": True, "dry_run": False, "signed_by": "SHA256:x"}
            if leaves
            else {}
        ),
    }
    (asking.visit.folder / "compared.json").write_text('{"figures": []}', encoding="utf-8")
    answer = asking.ask("GET", "/result")
    text = answer.body.decode()
    assert answer.status == 200
    assert ("/release.zip" in text, 'id="despite"' in text) == (leaves, not leaves)
    assert "<b>one" not in text
    assert "<script>a" not in text
    assert "Columns were dropped: 1." in text
    assert "sfumato sanitize &#39;pa tients.csv.gz&#39; -o FOLDER --recipe owner/recipe.toml" in text
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; connect-src" in policy


def test_a_policy_that_kept_rare_categories_cannot_meet_is_refused_where_it_is_chosen(asking: Asking) -> None:
    asking.ask("POST", "/api/file?name=a.csv", b"a,b\n1,2\n")
    assert asking.ask("POST", "/api/look", json.dumps({"rare": "keep"}).encode()).status == 200
    answer = asking.ask("POST", "/api/choices", json.dumps({"policy": "research"}).encode())
    assert answer.status == 400
    assert "choose another policy, or pool or generalize them" in answer.error
    assert asking.ask("POST", "/api/choices", json.dumps({"policy": "trusted"}).encode()).status == 200
