#!/bin/bash
# Ends the nodes that up.sh made in FOLDER, their switch, and all processes in them: down.sh FOLDER [NODE…]; without names, all.
cd "$1" || exit
shift
files=("${@/%/.pid}")
if [ $# = 0 ]; then files=(*.pid); fi
for file in "${files[@]}"; do
  kill -KILL "$(cat "$file")"
  rm "$file"
done
