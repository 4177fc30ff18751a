# Sourced: install something with whatever package manager there is.

as_root() {
    if [[ $(id -u) == 0 ]]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        return 1
    fi
}

# The first of several packages that can be installed: install_first "<for apt-get>" "<for dnf>" "<for apk>" <for brew>…
# Each of the first three is a list of names; the rest is what brew is told.
install_first() {
    local package apt=$1 dnf=$2 apk=$3
    shift 3
    if command -v apt-get >/dev/null; then
        as_root apt-get update -qq || true
        for package in $apt; do
            as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" && return
        done
    elif command -v dnf >/dev/null; then
        for package in $dnf; do as_root dnf install -y -q "$package" && return; done
    elif command -v apk >/dev/null; then
        for package in $apk; do as_root apk add --quiet "$package" && return; done
    elif command -v brew >/dev/null; then
        brew install --quiet "$@" && return
    fi
    return 1
}
