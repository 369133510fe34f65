#!/bin/sh
# Disk snapshots for backups where the database is on btrfs: see README.md.
set -eu

case $VERGER_SNAPSHOT_VOLUME in
  index) directory=$VERGER_SNAPSHOT_INDEX ;;
  *) directory=$VERGER_SNAPSHOT_DATABASE ;;
esac

# The subvolume that holds the directory: its root has the inode 256.
subvolume=$(realpath "$directory")
while [ "$(stat -c %i "$subvolume")" != 256 ]; do
  [ "$subvolume" != / ] || { echo "$directory is in no btrfs subvolume" >&2; exit 1; }
  subvolume=$(dirname "$subvolume")
done
snapshots=$(findmnt --noheadings --first-only --output TARGET --target "$subvolume")/.verger-snapshots
snapshot=$snapshots/$VERGER_SNAPSHOT_ID

inside() { # where a live directory is in the snapshot
  echo "$snapshot/$(realpath --relative-to "$subvolume" "$1")"
}

case $1 in
  create)
    mkdir -p -m 0700 "$snapshots"
    btrfs subvolume snapshot -r "$subvolume" "$snapshot" >&2
    [ "$VERGER_SNAPSHOT_VOLUME" = index ] || echo "database=$(inside "$VERGER_SNAPSHOT_DATABASE")"
    [ "$VERGER_SNAPSHOT_VOLUME" = database ] || echo "index=$(inside "$VERGER_SNAPSHOT_INDEX")"
    ;;
  delete)
    [ ! -e "$snapshot" ] || btrfs subvolume delete "$snapshot" >&2
    ;;
  *) echo "usage: $0 create|delete" >&2; exit 2 ;;
esac
