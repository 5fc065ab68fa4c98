// One dumbbell for ns-3: long-lived SACK TCP flows through one drop-tail bottleneck.
//
// Compile against an installed ns-3 (Debian: libns3-dev), out of the source tree:
//
//   g++ -O2 -o BUILD/dumbbell dumbbell.cc -lns3-applications -lns3-point-to-point -lns3-internet
//       -lns3-traffic-control -lns3-network -lns3-core
//
// The options are those of ../ns2/dumbbell.tcl, and so is the output: "progress SIMULATED_SECONDS
// PACKETS" lines, PACKETS being what the bottleneck has transmitted.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

using namespace ns3;

namespace {

constexpr uint32_t kSegment = 1448;          // 1500 with 20 IP, 20 TCP and 12 timestamp bytes
constexpr uint64_t kMaxWindow = 65535ull << 14; // what the TCP header can advertise
constexpr uint16_t kPort = 5001;

struct Options {
  uint32_t flows = 1;
  uint32_t hosts = 1;
  uint64_t rate = 0;
  uint64_t access = 0;
  double rtt_lo = 0;
  double rtt_hi = 0;
  uint32_t buffer = 0;
  uint32_t window = 0;
  double loss = 0;
  double duration = 0;
  double step = 0;
};

uint64_t g_packets = 0;

void CountPacket(Ptr<const Packet>) { ++g_packets; }

void PrintProgress() {
  std::printf("progress %.6f %llu\n", Simulator::Now().GetSeconds(),
              static_cast<unsigned long long>(g_packets));
  std::fflush(stdout);
}

void Progress(double step) {
  PrintProgress();
  Simulator::Schedule(Seconds(step), &Progress, step);
}

void SetTcpDefaults(const Options& o) {
  const uint64_t window = std::min<uint64_t>(uint64_t{o.window} * kSegment, kMaxWindow);
  const uint64_t receive = std::min<uint64_t>(2 * window, kMaxWindow);
  Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpNewReno::GetTypeId()));
  Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(kSegment));
  Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
  Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
  Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(window));
  Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(receive));
  Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
  Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
}

// A link without flow control to the layer above: the device queue is the only queue, as in the other simulators.
NetDeviceContainer Link(Ptr<Node> a, Ptr<Node> b, uint64_t rate, double delay, uint32_t packets) {
  PointToPointHelper p2p;
  p2p.DisableFlowControl();
  p2p.SetDeviceAttribute("DataRate", DataRateValue(DataRate(rate)));
  p2p.SetChannelAttribute("Delay", TimeValue(Seconds(delay)));
  p2p.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize",
               QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, packets)));
  return p2p.Install(a, b);
}

// Without flow control the address helper installs no queue discipline; check that it stays so.
Ipv4InterfaceContainer AssignAddresses(const NetDeviceContainer& devices, const std::string& network) {
  Ipv4AddressHelper helper(network.c_str(), "255.255.255.0");
  const auto interfaces = helper.Assign(devices);
  for (uint32_t i = 0; i < devices.GetN(); ++i) {
    const auto control = devices.Get(i)->GetNode()->GetObject<TrafficControlLayer>();
    NS_ABORT_IF(control && control->GetRootQueueDiscOnDevice(devices.Get(i)));
  }
  return interfaces;
}

Ptr<Ipv4StaticRouting> Routing(Ptr<Node> node) {
  return Ipv4StaticRoutingHelper().GetStaticRouting(node->GetObject<Ipv4>());
}

} // namespace

int main(int argc, char* argv[]) {
  Options o;
  CommandLine cmd;
  cmd.AddValue("flows", "number of flows", o.flows);
  cmd.AddValue("hosts", "host pairs that share the flows", o.hosts);
  cmd.AddValue("rate", "bottleneck, bit/s", o.rate);
  cmd.AddValue("access", "access links, bit/s", o.access);
  cmd.AddValue("rtt_lo", "base RTT of the first host pair, s", o.rtt_lo);
  cmd.AddValue("rtt_hi", "base RTT of the last host pair, s", o.rtt_hi);
  cmd.AddValue("buffer", "bottleneck buffer, packets", o.buffer);
  cmd.AddValue("window", "upper limit of every flow's window, packets", o.window);
  cmd.AddValue("loss", "random loss on the bottleneck, per packet", o.loss);
  cmd.AddValue("duration", "simulated seconds", o.duration);
  cmd.AddValue("step", "simulated seconds between progress lines", o.step);
  cmd.Parse(argc, argv);
  if (o.flows == 0 || o.hosts == 0 || o.rate == 0 || o.access == 0 || o.rtt_lo <= 0 ||
      o.rtt_hi < o.rtt_lo || o.buffer == 0 || o.window == 0 || o.duration <= 0 || o.step <= 0) {
    std::fprintf(stderr, "missing or impossible option\n");
    return 2;
  }
  SetTcpDefaults(o);

  // Few flows per host and few hosts per router: ns-3 searches sockets, interfaces and routes linearly.
  NodeContainer routers(2);
  NodeContainer senders(o.hosts);
  NodeContainer receivers(o.hosts);
  InternetStackHelper stack;
  stack.SetRoutingHelper(Ipv4StaticRoutingHelper());
  stack.SetIpv6StackInstall(false);
  for (const auto& nodes : {routers, senders, receivers}) {
    stack.Install(nodes);
  }

  constexpr uint32_t unlimited = 100000000;
  const double half = o.rtt_lo / 4;
  const auto middle = Link(routers.Get(0), routers.Get(1), o.rate, half, o.buffer);
  const auto middle_ip = AssignAddresses(middle, "10.0.0.0");
  Routing(routers.Get(0))->AddNetworkRouteTo("10.2.0.0", "255.255.0.0", middle_ip.GetAddress(1), 1);
  Routing(routers.Get(1))->AddNetworkRouteTo("10.1.0.0", "255.255.0.0", middle_ip.GetAddress(0), 1);
  // The reverse direction carries only acknowledgements and must not lose any.
  middle.Get(1)->GetObject<PointToPointNetDevice>()->GetQueue()->SetMaxSize(
      QueueSize(QueueSizeUnit::PACKETS, unlimited));

  std::vector<Ipv4Address> targets;
  for (uint32_t h = 0; h < o.hosts; ++h) {
    const double spread = o.hosts > 1 ? double(h) / (o.hosts - 1) : 0.0;
    const double rtt = o.rtt_lo + spread * (o.rtt_hi - o.rtt_lo);
    const double edge = (rtt / 2 - half) / 2;
    const auto in = Link(senders.Get(h), routers.Get(0), o.access, edge, unlimited);
    const auto out = Link(routers.Get(1), receivers.Get(h), o.access, edge, unlimited);
    const auto in_ip = AssignAddresses(in, "10.1." + std::to_string(h) + ".0");
    const auto out_ip = AssignAddresses(out, "10.2." + std::to_string(h) + ".0");
    Routing(senders.Get(h))->SetDefaultRoute(in_ip.GetAddress(1), 1);
    Routing(receivers.Get(h))->SetDefaultRoute(out_ip.GetAddress(0), 1);
    targets.push_back(out_ip.GetAddress(1));
  }

  if (o.loss > 0) {
    Ptr<RateErrorModel> model = CreateObject<RateErrorModel>();
    model->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
    model->SetRate(o.loss);
    middle.Get(1)->SetAttribute("ReceiveErrorModel", PointerValue(model));
  }
  middle.Get(0)->TraceConnectWithoutContext("PhyTxEnd", MakeCallback(&CountPacket));

  for (uint32_t h = 0; h < o.hosts; ++h) {
    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), kPort));
    sink.Install(receivers.Get(h)).Start(Seconds(0));
  }
  for (uint32_t i = 0; i < o.flows; ++i) {
    const uint32_t h = i % o.hosts;
    BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(targets[h], kPort));
    bulk.SetAttribute("MaxBytes", UintegerValue(0));
    bulk.SetAttribute("SendSize", UintegerValue(kSegment));
    // The first packets of the flows are spread over 0.1 s.
    bulk.Install(senders.Get(h)).Start(Seconds(0.1 * i / o.flows));
  }

  Simulator::Schedule(Seconds(o.step), &Progress, o.step);
  Simulator::Stop(Seconds(o.duration));
  Simulator::Run();
  PrintProgress();
  Simulator::Destroy();
  return 0;
}
