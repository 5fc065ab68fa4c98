# One dumbbell for ns-2: long-lived SACK TCP flows through one drop-tail bottleneck.
#
#   ns dumbbell.tcl key value [key value ...]
#
# All sizes come from the caller (../run.py computes them once for every simulator):
#   flows, hosts       number of flows, and of host pairs that share them (flow i uses pair i mod hosts)
#   rate               bottleneck, bit/s            access      access links, bit/s
#   rtt_lo, rtt_hi     base round-trip time of the first and the last host pair, s
#   buffer             bottleneck buffer, packets   window      upper limit of every flow's window, packets
#   loss               random loss on the bottleneck, per packet (0: none)
#   duration, step     simulated seconds, and the distance between two progress lines
#
# Output: "progress SIMULATED_SECONDS PACKETS" lines, PACKETS being what has left the bottleneck queue.

array set opt $argv
foreach key {flows hosts rate access rtt_lo rtt_hi buffer window loss duration step} {
  if {![info exists opt($key)]} { puts stderr "missing option: $key"; exit 2 }
}

# Without this every packet carries the headers of all protocols ns-2 knows, about 2 kB.
remove-all-packet-headers
add-packet-header Flags IP TCP

Agent/TCP set packetSize_ 1460            ;# plus 40 bytes of headers: 1500 on the wire
Agent/TCP set window_ $opt(window)
Agent/TCP set windowInit_ 10
Agent/TCP set minrto_ 0.2
Agent/TCPSink/Sack1/DelAck set interval_ 0.1
Agent/TCPSink set maxSackBlocks_ 3

set ns [new Simulator]
set left [$ns node]
set right [$ns node]

# DropTail refuses the packet that would make the queue `limit` long, so ask for one more.
set half [expr $opt(rtt_lo) / 4.0]
$ns duplex-link $left $right $opt(rate) $half DropTail
$ns queue-limit $left $right [expr $opt(buffer) + 1]
$ns queue-limit $right $left 100000000

for {set h 0} {$h < $opt(hosts)} {incr h} {
  set spread [expr $opt(hosts) > 1 ? double($h) / ($opt(hosts) - 1) : 0.0]
  set rtt [expr $opt(rtt_lo) + $spread * ($opt(rtt_hi) - $opt(rtt_lo))]
  set edge [expr ($rtt / 2.0 - $half) / 2.0]
  set src($h) [$ns node]
  set dst($h) [$ns node]
  foreach {a b} [list $src($h) $left $right $dst($h)] {
    $ns duplex-link $a $b $opt(access) $edge DropTail
    $ns queue-limit $a $b 100000000
    $ns queue-limit $b $a 100000000
  }
}

if {$opt(loss) > 0} {
  set random [new RandomVariable/Uniform]
  set model [new ErrorModel]
  $model unit pkt
  $model set rate_ $opt(loss)
  $model ranvar $random
  $model drop-target [new Agent/Null]
  $ns link-lossmodel $model $left $right
}

# A counter between queue and wire, and nothing else: the full queue monitor costs three objects a packet.
set queue [[$ns link $left $right] queue]
set counter [new QueueMonitor]
set snoop [new SnoopQueue/Out]
$snoop set-monitor $counter
$snoop target [$queue target]
$queue target $snoop

for {set i 0} {$i < $opt(flows)} {incr i} {
  set h [expr $i % $opt(hosts)]
  set tcp [new Agent/TCP/Sack1]
  set sink [new Agent/TCPSink/Sack1/DelAck]
  $ns attach-agent $src($h) $tcp
  $ns attach-agent $dst($h) $sink
  $ns connect $tcp $sink
  set ftp [new Application/FTP]
  $ftp attach-agent $tcp
  # The first packets of the flows are spread over 0.1 s.
  $ns at [expr 0.1 * $i / $opt(flows)] "$ftp start"
}

proc progress {} {
  global ns counter opt
  puts "progress [$ns now] [$counter set pdepartures_]"
  flush stdout
  $ns at [expr [$ns now] + $opt(step)] progress
}
proc finish {} {
  global ns counter
  puts "progress [$ns now] [$counter set pdepartures_]"
  flush stdout
  exit 0
}
$ns at $opt(step) progress
$ns at $opt(duration) finish
$ns run
