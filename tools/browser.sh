#!/usr/bin/env bash
# Print the path of a Chromium on standard output, for the tests that look at pages in a real browser.
#
# Looks at STERNA_BROWSER, the PATH and the usual folders; if there is none, installs one with the system's package
# manager; if that is impossible, says so in one sentence and fails.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/packages.sh"

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

find_browser && exit 0
echo "No Chromium found; trying to install one." >&2
install_first chromium chromium chromium --cask chromium >&2 || true
find_browser && exit 0
echo "The browser tests need Chromium: install it (Debian: chromium) or point STERNA_BROWSER at one." >&2
exit 1
