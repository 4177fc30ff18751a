#!/usr/bin/env bash
# Print the path of a Chromium on standard output, for the tests that look at pages in a real browser.
#
# Looks at STERNA_BROWSER, the PATH and the usual folders; if there is none, installs one with the system's package
# manager; if that is impossible, says so in one sentence and fails.
set -euo pipefail

find_browser() {
    local candidate
    for candidate in "${STERNA_BROWSER:-}" chromium chromium-browser google-chrome google-chrome-stable \
        "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome" \
        /Applications/Chromium.app/Contents/MacOS/Chromium; do
        if [[ -n $candidate ]] && command -v "$candidate"; then
            return 0
        fi
    done
    return 1
}

as_root() {
    if [[ $(id -u) == 0 ]]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        return 1
    fi
}

install_browser() {
    if command -v apt-get >/dev/null; then
        as_root apt-get update -qq || true
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium
    elif command -v dnf >/dev/null; then
        as_root dnf install -y -q chromium
    elif command -v apk >/dev/null; then
        as_root apk add --quiet chromium
    elif command -v brew >/dev/null; then
        brew install --quiet --cask chromium
    else
        return 1
    fi
}

find_browser && exit 0
echo "No Chromium found; trying to install one." >&2
install_browser >&2 || true
find_browser && exit 0
echo "The browser tests need Chromium: install it (Debian: chromium) or point STERNA_BROWSER at one." >&2
exit 1
