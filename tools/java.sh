#!/usr/bin/env bash
# Print the home of a Java that Spark can use (17 or newer) on standard output.
#
# Looks at JAVA_HOME, the PATH and the usual folders; if there is none, installs one with the system's package
# manager; if that is impossible, says so in one sentence and fails.
set -euo pipefail

lowest=17

# The home of a java executable, if it is new enough; the java itself is asked, as a link says nothing.
home_of() {
    local settings version home
    settings=$("$1" -XshowSettings:properties -version 2>&1) || return 1
    version=$(sed -nE 's/^ *java\.specification\.version = ([0-9]+).*/\1/p' <<<"$settings")
    home=$(sed -nE 's/^ *java\.home = (.*)$/\1/p' <<<"$settings")
    [[ -n $home && -n $version && $version -ge $lowest ]] || return 1
    echo "$home"
}

find_java() {
    local candidate
    for candidate in "${JAVA_HOME:+$JAVA_HOME/bin/java}" "$(command -v java || true)" \
        /usr/lib/jvm/*/bin/java /opt/homebrew/opt/openjdk*/bin/java /usr/local/opt/openjdk*/bin/java \
        /Library/Java/JavaVirtualMachines/*/Contents/Home/bin/java; do
        if [[ -n $candidate && -x $candidate ]] && home_of "$candidate"; then
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

install_java() {
    if command -v apt-get >/dev/null; then
        as_root apt-get update -qq || true
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends openjdk-21-jre-headless ||
            as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends openjdk-17-jre-headless
    elif command -v dnf >/dev/null; then
        as_root dnf install -y -q java-21-openjdk-headless || as_root dnf install -y -q java-17-openjdk-headless
    elif command -v apk >/dev/null; then
        as_root apk add --quiet openjdk21-jre-headless || as_root apk add --quiet openjdk17-jre-headless
    elif command -v brew >/dev/null; then
        brew install --quiet openjdk@21
    else
        return 1
    fi
}

find_java && exit 0
echo "No Java $lowest or newer found; trying to install one." >&2
install_java >&2 || true
find_java && exit 0
echo "Sterna needs Java $lowest or newer: install a JRE (Debian: openjdk-17-jre-headless) or point JAVA_HOME at one." >&2
exit 1
