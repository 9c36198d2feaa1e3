#!/bin/sh
# Stands in for nvidia-smi in tests. Memory and processes are those of the library in ../nvml that stands in for NVML;
# the rest lies in ../smi: a file for each field of each GPU, and `unknown` has the fields of newer drivers.
here=$(dirname "$(dirname "$0")")

answer() { # GPU, FIELD
    case $2 in
    memory.*)
        read -r used total <"$here/nvml/gpu$1/memory"
        case $2 in
        memory.used) value=$((used >> 20)) ;;
        memory.free) value=$(((total - used) >> 20)) ;;
        memory.reserved) value=0 ;;
        memory.total) value=$((total >> 20)) ;;
        esac
        ;;
    *) read -r value <"$here/smi/gpu$1/$2" || value='[N/A]' ;;
    esac 2>/dev/null
}

each_gpu() {
    seq 0 $(($(cat "$here/nvml/count") - 1))
}

case $1 in
--query-gpu=*)
    fields=$(echo "${1#*=}" | tr , ' ')
    for field in $fields; do
        if grep -qx "$field" "$here/smi/unknown"; then
            echo "Field \"$field\" is not a valid field to query."
            exit 2
        fi
    done
    for gpu in $(each_gpu); do
        line=
        for field in $fields; do
            answer "$gpu" "$field"
            line="$line${line:+, }$value"
        done
        echo "$line"
    done
    ;;
--query-compute-apps=*)
    for gpu in $(each_gpu); do
        answer "$gpu" pci.bus_id
        while read -r pid bytes; do
            [ -z "$pid" ] || echo "$value, $pid, $((bytes >> 20))"
        done <"$here/nvml/gpu$gpu/compute"
    done
    ;;
-q)
    for gpu in $(each_gpu); do
        answer "$gpu" pci.bus_id
        echo "<gpu id=\"$value\">"
        cat "$here/smi/gpu$gpu/xml"
        echo "</gpu>"
    done
    ;;
nvlink) cat "$here/smi/nvlink" ;;
*) exit 2 ;;
esac
