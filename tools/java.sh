#!/usr/bin/env bash
# Print the home of a Java that Spark can use (17 or newer) on standard output.
#
# Looks at JAVA_HOME, the PATH and the usual folders; if there is none, installs one with the system's package
# manager; if that is impossible, says so in one sentence and fails.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/packages.sh"

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

find_java && exit 0
echo "No Java $lowest or newer found; trying to install one." >&2
install_first "openjdk-21-jre-headless openjdk-17-jre-headless" "java-21-openjdk-headless java-17-openjdk-headless" \
    "openjdk21-jre-headless openjdk17-jre-headless" openjdk@21 >&2 || true
find_java && exit 0
echo "Sterna needs Java $lowest or newer: install a JRE (Debian: openjdk-17-jre-headless) or point JAVA_HOME at one." >&2
exit 1
