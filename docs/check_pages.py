"""Open the built pages as a reader would: python docs/check_pages.py docs/_build/html

Every page is loaded in a headless Chromium from a local server. Wrong are: a link or an anchor that leads nowhere, a
picture that does not show, a request that fails or leaves this machine, an error on the console; code or a table that
is clipped at 1280 pixels, code in its height too, a page that is wider than a telephone; a method that the API lacks, a
ConvergenceWarning in the output of the gallery.
"""

import shutil
import sys
import threading
import zlib
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urldefrag

from playwright.sync_api import sync_playwright

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
LINKS = "[...document.querySelectorAll('a[href]')].map(a => a.href)"
IDS = "[...document.querySelectorAll('[id]')].map(e => e.id)"
OUTPUT = "[...document.querySelectorAll('.sphx-glr-script-out')].map(e => e.textContent).join()"
BROKEN = "[...document.images].filter(i => !(i.complete && i.naturalWidth)).map(i => i.currentSrc || i.src)"
LOAD_ALL = """async () => {
  for (const i of document.images) i.loading = 'eager';
  await Promise.all([...document.images].map(i => i.decode().catch(() => null)));
}"""

# A bar to scroll by clips too. A pixel is allowed for rounding.
CLIPPED = """() => [...document.querySelectorAll('.main *')].filter(e => e.clientWidth
  && (e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX != 'visible'
  || e.matches('pre') && e.scrollHeight > e.clientHeight + 1))
  .map(e => `${e.tagName} of ${e.scrollWidth} x ${e.scrollHeight} pixels in ${e.clientWidth} x ${e.clientHeight}: `
  + e.textContent.trim().slice(0, 40))"""
PAGE_WIDTH = "document.documentElement.scrollWidth"
DESKTOP, TELEPHONE = ({"width": width, "height": 900} for width in (1280, 390))

UNCONVERGED = "gallery/plot_2_chains.html"  # shows such chains
# Methods of the package and methods that are inherited: a page has those of its class only if it is told so.
DOCUMENTED = {
    "HorseshoeProbitClassifier": "fit predict predict_proba predict_proba_samples predict_interval predict_log_proba "
    "decision_function summary to_arviz",
    "HorseshoeSelector": "fit transform fit_transform inverse_transform get_support get_feature_names_out",
}


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


def serve(folder):
    """The address of the folder, on a port of this machine that is free."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/"


def look(browser, root, path, wrong):
    """Load a page, note in `wrong` what it complains of, and return its links and its anchors."""
    page = browser.new_page(viewport=DESKTOP)
    page.on("console", lambda message: message.type == "error" and wrong.append(f"{path}: console: {message.text}"))
    page.on("pageerror", lambda error: wrong.append(f"{path}: error: {error}"))
    page.on("requestfailed", lambda request: wrong.append(f"{path}: not loaded: {request.url}"))
    page.on("response", lambda r: r.status >= 400 and wrong.append(f"{path}: status {r.status}: {r.url}"))
    page.route(lambda url: not url.startswith((root, "data:")), lambda route: route.abort())
    page.goto(root + path)
    page.evaluate(LOAD_ALL)
    wrong.extend(f"{path}: broken picture: {src}" for src in page.evaluate(BROKEN))
    if path != UNCONVERGED and "ConvergenceWarning" in page.evaluate(OUTPUT):
        wrong.append(f"{path}: a ConvergenceWarning")
    wrong.extend(f"{path}: clipped: {what}" for what in page.evaluate(CLIPPED))
    found = page.evaluate(LINKS), set(page.evaluate(IDS))
    page.set_viewport_size(TELEPHONE)
    if (width := page.evaluate(PAGE_WIDTH)) > TELEPHONE["width"]:
        wrong.append(f"{path}: {width} pixels wide on a screen of {TELEPHONE['width']}")
    page.close()
    return found


def check_links(folder, root, links, anchors, wrong):
    """Note each link within the folder that has no file, or no such anchor on its page."""
    for path, targets in links.items():
        for target in targets:
            address, anchor = urldefrag(target)
            if not address.startswith(root):
                continue
            to = unquote(address.removeprefix(root)) or "index.html"
            if not (folder / to).is_file():
                wrong.append(f"{path}: leads to {to}, which is not there")
            elif anchor and to in anchors and unquote(anchor) not in anchors[to]:
                wrong.append(f"{path}: leads to {to}#{anchor}, which has no such place")


def check_api(folder, wrong):
    """Note each method of ``DOCUMENTED`` that the inventory of the pages does not have."""
    *_, packed = (folder / "objects.inv").read_bytes().split(b"\n", 4)
    there = {line.split()[0] for line in zlib.decompress(packed).decode().splitlines()}
    for name, methods in DOCUMENTED.items():
        missing = {f"skhorseshoe.{name}.{method}" for method in methods.split()} - there
        wrong.extend(f"objects.inv: no {method}" for method in sorted(missing))


def main(folder):
    paths = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*.html"))
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if not paths or program is None:
        return f"No pages in {folder}." if program else f"No browser: install one of {', '.join(BROWSERS)}."
    root, wrong, links, anchors = serve(folder), [], {}, {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for path in paths:
            links[path], anchors[path] = look(browser, root, path, wrong)
        browser.close()
    check_links(folder, root, links, anchors, wrong)
    check_api(folder, wrong)
    print(*dict.fromkeys(wrong), f"{len(paths)} pages, {sum(map(len, links.values()))} links", sep="\n")
    return len(wrong) > 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
