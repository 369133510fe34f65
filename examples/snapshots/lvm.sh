#!/bin/sh
# Disk snapshots for backups where the database is on a logical volume of LVM: see README.md.
set -eu

# What the server may write while the snapshot is copied; empty for a thin volume.
size=10%ORIGIN
mounts=/run/verger-snapshots

case $VERGER_SNAPSHOT_VOLUME in
  index) directory=$VERGER_SNAPSHOT_INDEX ;;
  *) directory=$VERGER_SNAPSHOT_DATABASE ;;
esac
device=$(findmnt --noheadings --first-only --output SOURCE --target "$directory")
root=$(findmnt --noheadings --first-only --output TARGET --target "$directory")
type=$(findmnt --noheadings --first-only --output FSTYPE --target "$directory")
group=$(lvs --noheadings --options vg_name "$device" | tr -d ' ')
mount=$mounts/$VERGER_SNAPSHOT_ID

inside() { # where a live directory is in the snapshot
  echo "$mount/$(realpath --relative-to "$root" "$1")"
}

case $1 in
  create)
    # LVM freezes the file system while it makes the snapshot.
    lvcreate --snapshot ${size:+--extents "$size"} --name "$VERGER_SNAPSHOT_ID" "$device" >&2
    # A thin one is not active by itself.
    lvchange --activate y --ignoreactivationskip "$group/$VERGER_SNAPSHOT_ID" >&2
    mkdir -p -m 0700 "$mount"
    options=ro
    [ "$type" != xfs ] || options=ro,nouuid
    mount -o "$options" "/dev/$group/$VERGER_SNAPSHOT_ID" "$mount"
    [ "$VERGER_SNAPSHOT_VOLUME" = index ] || echo "database=$(inside "$VERGER_SNAPSHOT_DATABASE")"
    [ "$VERGER_SNAPSHOT_VOLUME" = database ] || echo "index=$(inside "$VERGER_SNAPSHOT_INDEX")"
    ;;
  delete)
    ! mountpoint -q "$mount" || umount "$mount"
    [ ! -d "$mount" ] || rmdir "$mount"
    ! lvs "$group/$VERGER_SNAPSHOT_ID" >/dev/null 2>&1 ||
      lvremove --yes "$group/$VERGER_SNAPSHOT_ID" >&2
    ;;
  *) echo "usage: $0 create|delete" >&2; exit 2 ;;
esac
