#!/bin/sh
# Copies in the place of disk snapshots, where the file system has none: see README.md. With reflinks
# (XFS, btrfs) they take no room and moments. They are not of one moment: so they are made in the
# order of the documented backup, and not during a scavenge.
set -eu

# Where they go; with reflinks it has to be on the same file system.
copies=${VERGER_SNAPSHOT_COPIES:-}
[ -n "$copies" ] || copies=$(dirname "$VERGER_SNAPSHOT_DATABASE")/verger-copies
copy=$copies/$VERGER_SNAPSHOT_ID
live_index=$VERGER_SNAPSHOT_INDEX

no_scavenge() {
  [ ! -e "$live_index/scavenging/scavenging.db-wal" ] ||
    { echo "a scavenge runs, or one was killed: $live_index/scavenging/scavenging.db-wal" >&2; exit 1; }
}

clone() {
  cp --reflink=auto --preserve=timestamps "$@"
}

copy_index() {
  mkdir -p "$copy/index"
  [ -d "$live_index" ] || return 0
  # The tables of the map, until the map has not changed meanwhile.
  tries=0
  while :; do
    tries=$((tries + 1))
    [ $tries -le 100 ] || { echo "$live_index/indexmap does not stop changing" >&2; exit 1; }
    [ -e "$live_index/indexmap" ] || break
    clone "$live_index/indexmap" "$copy/index/indexmap" || continue
    for table in "$live_index"/*-*-*-*-*; do
      [ ! -e "$table" ] || clone "$table" "$copy/index/" || true
    done
    ! cmp -s "$live_index/indexmap" "$copy/index/indexmap" || break
  done
  for part in stream-existence/streamExistenceFilter.chk stream-existence/streamExistenceFilter.dat \
    scavenging/scavenging.db; do
    if [ -e "$live_index/$part" ]; then
      mkdir -p "$copy/index/$(dirname $part)"
      clone "$live_index/$part" "$copy/index/$part"
    fi
  done
}

copy_database() {
  mkdir -p "$copy/db"
  for checkpoint in chaser epoch writer proposal; do
    [ ! -e "$VERGER_SNAPSHOT_DATABASE/$checkpoint.chk" ] ||
      clone "$VERGER_SNAPSHOT_DATABASE/$checkpoint.chk" "$copy/db/"
  done
  for chunk in "$VERGER_SNAPSHOT_DATABASE"/chunk-*.??????; do
    clone "$chunk" "$copy/db/"
  done
}

case $1 in
  create)
    no_scavenge
    [ ! -e "$VERGER_SNAPSHOT_DATABASE/kurrent.ddb" ] ||
      { echo "kurrent.ddb cannot be copied while the server runs" >&2; exit 1; }
    mkdir -p -m 0700 "$copies"
    if [ "$VERGER_SNAPSHOT_VOLUME" != database ]; then
      copy_index
      echo "index=$copy/index"
    fi
    if [ "$VERGER_SNAPSHOT_VOLUME" != index ]; then
      copy_database
      echo "database=$copy/db"
    fi
    no_scavenge
    ;;
  delete) rm -rf "$copy" ;;
  *) echo "usage: $0 create|delete" >&2; exit 2 ;;
esac
