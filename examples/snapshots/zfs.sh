#!/bin/sh
# Disk snapshots for backups where the database is on ZFS: see README.md.
set -eu

case $VERGER_SNAPSHOT_VOLUME in
  index) directory=$VERGER_SNAPSHOT_INDEX ;;
  *) directory=$VERGER_SNAPSHOT_DATABASE ;;
esac
dataset=$(zfs list -H -o name "$directory")
root=$(zfs get -H -o value mountpoint "$dataset")
snapshot=$dataset@$VERGER_SNAPSHOT_ID

inside() { # where a live directory is in the snapshot; ZFS mounts it when it is used
  echo "$root/.zfs/snapshot/$VERGER_SNAPSHOT_ID/$(realpath --relative-to "$root" "$1")"
}

case $1 in
  create)
    zfs snapshot "$snapshot"
    [ "$VERGER_SNAPSHOT_VOLUME" = index ] || echo "database=$(inside "$VERGER_SNAPSHOT_DATABASE")"
    [ "$VERGER_SNAPSHOT_VOLUME" = database ] || echo "index=$(inside "$VERGER_SNAPSHOT_INDEX")"
    ;;
  delete)
    ! zfs list -H -t snapshot "$snapshot" >/dev/null 2>&1 || zfs destroy "$snapshot"
    ;;
  *) echo "usage: $0 create|delete" >&2; exit 2 ;;
esac
