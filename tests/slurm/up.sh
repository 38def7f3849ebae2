#!/bin/bash
# A Slurm cluster of one node on this machine, for tests: up.sh FOLDER CPUS. Needs root, slurm-wlm and munge; touches nothing outside of
# FOLDER, listens on the loopback only. Keep FOLDER's name short: it holds Unix sockets. down.sh ends it.
set -euo pipefail
folder=$1
cpus=$2
port=${SLURM_TEST_PORT:-26817}

mkdir -p "$folder"/{munge,state,spool,log,run,tmp}
chmod 755 "$folder" "$folder/run"
chmod 700 "$folder/munge"
if [ ! -f "$folder/munge/key" ]; then
  dd if=/dev/urandom of="$folder/munge/key" bs=1024 count=1 status=none
  chmod 400 "$folder/munge/key"
fi
# cred_expire: a requeued job waits as long. config_overrides: more CPUs than there are, for jobs beside each other. NodeAddr, No…InAddrAny:
# loopback only. MinJobAge: finished jobs can be asked about until the test has ended.
cat >"$folder/slurm.conf" <<EOF
ClusterName=test
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=$port
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$folder/run/munge.sock,cred_expire=5
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool/%n
TmpFS=$folder/tmp
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
NodeName=n1 NodeHostname=n1 NodeAddr=127.0.0.1 Port=$((port + 1)) CPUs=$cpus State=UNKNOWN
PartitionName=test Nodes=n1 Default=YES MaxTime=60 DefaultTime=5 OverSubscribe=NO State=UP
EOF
export SLURM_CONF=$folder/slurm.conf
munged --force --socket="$folder/run/munge.sock" --key-file="$folder/munge/key" --pid-file="$folder/run/munged.pid" \
  --log-file="$folder/log/munged.log" --seed-file="$folder/munge/seed" </dev/null >"$folder/log/munged.out" 2>&1
slurmctld -c -i -f "$SLURM_CONF" </dev/null >"$folder/log/slurmctld.out" 2>&1
slurmd -N n1 -f "$SLURM_CONF" </dev/null >"$folder/log/slurmd.out" 2>&1
for _ in $(seq 200); do
  [ "$(sinfo -h -t idle -o %D 2>/dev/null)" = 1 ] && exit 0
  sleep 0.1
done
echo "Slurm did not come up within 20 s:" >&2
tail -n 20 "$folder"/log/* >&2
exit 1
