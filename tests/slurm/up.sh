#!/bin/bash
# A Slurm cluster for tests: up.sh FOLDER CPUS [NODES NODE…]. Its one node is this machine, by its loopback; or its nodes, the controller on the first
# of them, are those that ../nodes/up.sh made in the folder NODES. Needs root, slurm-wlm and munge; touches nothing outside of FOLDER. Keep FOLDER's
# name short: it holds Unix sockets. down.sh ends the cluster.
set -euo pipefail
folder=$1
cpus=$2
port=${SLURM_TEST_PORT:-26817}
shift 2
if [ $# = 0 ]; then
  nodes=(n1)
  control="$(hostname -s)(127.0.0.1)"
  # Loopback only.
  listening=CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
  address() { echo 127.0.0.1; }
  on() { shift && "$@"; }
else
  made=$1
  nodes=("${@:2}")
  address() { awk -v node="$1" '$2 == node { print $1 }' "$made/hosts"; }
  control="${nodes[0]}($(address "${nodes[0]}"))"
  listening=
  on() { nsenter --target "$(cat "$made/$1.pid")" --all -- "${@:2}"; }
fi

mkdir -p "$folder"/{munge,state,spool,log,run} "${nodes[@]/#/$folder/tmp/}"
chmod 755 "$folder" "$folder/run"
chmod 700 "$folder/munge"
if [ ! -f "$folder/munge/key" ]; then
  dd if=/dev/urandom of="$folder/munge/key" bs=1024 count=1 status=none
  chmod 400 "$folder/munge/key"
fi
# cred_expire: a requeued job waits as long. config_overrides: more CPUs than there are, for jobs beside each other. MinJobAge: finished jobs can be
# asked about until the test has ended. SlurmdTimeout: seconds until a node that does not answer is taken for lost.
cat >"$folder/slurm.conf" <<EOF
ClusterName=test
SlurmctldHost=$control
SlurmctldPort=$port
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$folder/run/munge.sock,cred_expire=5
$listening
SlurmdTimeout=20
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool/%n
TmpFS=$folder/tmp/%n
SlurmctldPidFile=$folder/run/slurmctld.pid
SlurmdPidFile=$folder/run/slurmd.%n.pid
SlurmctldLogFile=$folder/log/slurmctld.log
SlurmdLogFile=$folder/log/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,sched_min_interval=0,batch_sched_delay=0
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
PropagateResourceLimits=NONE
SlurmdParameters=config_overrides
EnforcePartLimits=ALL
ReturnToService=2
MinJobAge=900
KillWait=5
JobRequeue=1
MailProg=/bin/true
$(for node in "${nodes[@]}"; do
  echo "NodeName=$node NodeHostname=$node NodeAddr=$(address "$node") Port=$((port + 1)) CPUs=$cpus State=UNKNOWN"
done)
PartitionName=test Nodes=$(IFS=, && echo "${nodes[*]}") Default=YES MaxTime=60 DefaultTime=5 OverSubscribe=NO State=UP
EOF
export SLURM_CONF=$folder/slurm.conf
trap 'echo "Slurm did not start:" >&2; tail -n 20 "$folder"/log/* >&2' ERR
munged --force --socket="$folder/run/munge.sock" --key-file="$folder/munge/key" --pid-file="$folder/run/munged.pid" \
  --log-file="$folder/log/munged.log" --seed-file="$folder/munge/seed" </dev/null >"$folder/log/munged.out" 2>&1
on "${nodes[0]}" slurmctld -c -i -f "$SLURM_CONF" </dev/null >"$folder/log/slurmctld.out" 2>&1
for node in "${nodes[@]}"; do on "$node" slurmd -N "$node" -f "$SLURM_CONF" </dev/null >"$folder/log/slurmd.$node.out" 2>&1; done
for _ in $(seq 200); do
  [ "$(on "${nodes[0]}" sinfo -h -t idle -o %D 2>/dev/null)" = "${#nodes[@]}" ] && exit 0
  sleep 0.1
done
echo "expected ${#nodes[@]} idle nodes within 20 s, found fewer" >&2
false
