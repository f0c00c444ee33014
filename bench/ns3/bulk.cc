// Bulk TCP over a chain of hosts or a single bottleneck in ns-3: the networks of sawtooth's topologies `chain` and
// `path`. Prints one line of JSON. Parameters: `bulk --help`.

#include "card.h"

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"

#include <cmath>
#include <ctime>
#include <iostream>
#include <memory>
#include <numeric>
#include <vector>

using namespace ns3;

namespace
{

constexpr uint32_t SEGMENT = 1448;          // payload bytes
constexpr uint32_t ETHERNET_HEADER = 14;    // bytes; Linux's transmitters count no more
constexpr uint32_t TIMESTAMPS = 12;         // bytes of option, added to the frame where ns-3 goes without
constexpr uint32_t BUFFER = 64 << 20;       // bytes, at both ends
constexpr uint64_t WRITTEN_AHEAD = 1 << 20; // bytes in the send buffer, at least
constexpr uint16_t FIRST_PORT = 5201;

struct Options
{
    std::string topology = "chain";
    std::string cc = "cubic";
    uint64_t rate = 1'000'000'000; // bit/s
    uint64_t rtt = 400'000;        // ns
    double loss = 0;
    uint32_t queue = 1000; // packets
    uint32_t seconds = 2;
    uint32_t hosts = 5;
    uint32_t flows = 1;
    uint32_t seed = 1;
    bool timestamps = false;
};

// What Linux has, where ns-3 has a setting for it. SACK, window scaling, limited transmit, PRR, HyStart and an
// acknowledgement for two segments are ns-3's defaults too.
void
LikeLinux()
{
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(SEGMENT));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(BUFFER));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(BUFFER));
    Config::SetDefault("ns3::TcpSocket::ConnTimeout", TimeValue(Seconds(1)));
    Config::SetDefault("ns3::TcpSocket::DataRetries", UintegerValue(15));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(40)));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
}

std::string
SocketType(const std::string& cc)
{
    if (cc == "cubic")
    {
        return "ns3::TcpCubic";
    }
    if (cc == "bbr")
    {
        return "ns3::TcpBbr"; // turns pacing on itself
    }
    NS_ABORT_MSG_UNLESS(cc == "reno", "cc is cubic, bbr or reno");
    return "ns3::TcpLinuxReno";
}

// Sets ns-3 up too; any of its attributes may be given as well, as in --ns3::TcpSocketBase::Sack=false.
Options
Parse(int argc, char** argv)
{
    LikeLinux();
    Options options;
    CommandLine line;
    line.Usage("Bulk TCP over a chain of hosts or a single bottleneck");
    line.AddValue("topology", "chain | path", options.topology);
    line.AddValue("cc", "cubic | bbr | reno", options.cc);
    line.AddValue("rate", "of each host's card, or of the bottleneck, bit/s", options.rate);
    line.AddValue("rtt", "round-trip propagation time, ns", options.rtt);
    line.AddValue("loss", "probability: chain, on the third card; path, after the bottleneck", options.loss);
    line.AddValue("queue", "packets that may wait for a transmitter", options.queue);
    line.AddValue("seconds", "how long is simulated, s", options.seconds);
    line.AddValue("hosts", "in the chain, 4 at least", options.hosts);
    line.AddValue("flows", "from the first host to the last", options.flows);
    line.AddValue("seed", "of all randomness, 1 at least", options.seed);
    line.AddValue("timestamps", "TCP timestamps, from which ns-3 takes its RTT in whole ms", options.timestamps);
    line.Parse(argc, argv);
    NS_ABORT_MSG_UNLESS(options.topology == "chain" || options.topology == "path", "topology is chain or path");
    NS_ABORT_MSG_UNLESS(options.hosts >= 4, "a chain has 4 hosts at least");
    RngSeedManager::SetSeed(options.seed);
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TypeId::LookupByName(SocketType(options.cc))));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(options.timestamps));
    return options;
}

// Nodes in a row, joined by devices.
class Line
{
  public:
    Line(uint32_t hosts, bool timestamps)
        : m_frameOverhead(ETHERNET_HEADER + (timestamps ? 0 : TIMESTAMPS))
    {
        m_nodes.Create(hosts);
        InternetStackHelper stack;
        stack.SetIpv6StackInstall(false);
        stack.SetRoutingHelper(Ipv4StaticRoutingHelper());
        stack.Install(m_nodes);
    }

    // Host `i` to host `i + 1` and back; returns the device that faces forward.
    Ptr<LinkDevice> Join(uint32_t i, Ptr<Transmitter> forward, Ptr<Transmitter> backward, Time out, Time back)
    {
        auto left = CreateObject<LinkDevice>();
        auto right = CreateObject<LinkDevice>();
        NetDeviceContainer devices;
        for (auto& [host, device] : {std::pair(i, left), std::pair(i + 1, right)})
        {
            device->SetAddress(Mac48Address::Allocate());
            m_nodes.Get(host)->AddDevice(device);
            devices.Add(device);
        }
        left->Attach(right, forward, out, m_frameOverhead);
        right->Attach(left, backward, back, m_frameOverhead);
        Ipv4AddressHelper addresses(Ipv4Address((10U << 24) + (i << 8)), "255.255.255.0");
        m_addresses.Add(addresses.Assign(devices));
        return left;
    }

    // Host routes to both ends: one towards each on every host.
    void Route()
    {
        const uint32_t last = m_nodes.GetN() - 1;
        Ipv4StaticRoutingHelper routing;
        for (uint32_t i = 0; i <= last; ++i)
        {
            auto ipv4 = m_nodes.Get(i)->GetObject<Ipv4>();
            auto table = routing.GetStaticRouting(ipv4);
            // Interface 0 is the loopback; a host between has its left link on 1 and its right one on 2.
            if (i < last)
            {
                table->AddHostRouteTo(To(), ipv4->GetNInterfaces() - 1);
            }
            if (i > 0)
            {
                table->AddHostRouteTo(From(), 1);
            }
        }
    }

    Ptr<Node> First() const
    {
        return m_nodes.Get(0);
    }

    Ptr<Node> Last() const
    {
        return m_nodes.Get(m_nodes.GetN() - 1);
    }

    Ipv4Address From() const
    {
        return m_addresses.GetAddress(0);
    }

    Ipv4Address To() const
    {
        return m_addresses.GetAddress(m_addresses.GetN() - 1);
    }

  private:
    uint32_t m_frameOverhead; // bytes
    NodeContainer m_nodes;
    Ipv4InterfaceContainer m_addresses;
};

// `part` of `parts` nearly equal shares of a time.
Time
Share(uint64_t nanoseconds, uint32_t part, uint32_t parts)
{
    return NanoSeconds(nanoseconds * (part + 1) / parts - nanoseconds * part / parts);
}

// One card a host, shared by what it sends in both directions; loss on the third card, towards the fourth host.
Line
Chain(const Options& options)
{
    Line line(options.hosts, options.timestamps);
    std::vector<Ptr<Transmitter>> cards;
    for (uint32_t i = 0; i < options.hosts; ++i)
    {
        cards.push_back(Create<Transmitter>(DataRate(options.rate), options.queue));
    }
    const uint32_t links = options.hosts - 1;
    for (uint32_t i = 0; i < links; ++i)
    {
        const Time out = Share(options.rtt - options.rtt / 2, i, links);
        const Time back = Share(options.rtt / 2, i, links);
        auto device = line.Join(i, cards[i], cards[i + 1], out, back);
        if (i == 2)
        {
            device->LoseBeforeQueue(options.loss);
        }
    }
    return line;
}

// Sender, router, receiver. The hosts of sawtooth's `path` that only lose or delay are folded into the bottleneck.
Line
Path(const Options& options)
{
    Line line(3, options.timestamps);
    line.Join(0, nullptr, nullptr, Time(0), Time(0));
    auto bottleneck = Create<Transmitter>(DataRate(options.rate), options.queue);
    const Time back = NanoSeconds(options.rtt / 2);
    auto device = line.Join(1, bottleneck, nullptr, NanoSeconds(options.rtt) - back, back);
    device->LoseAfterTransmitter(options.loss);
    return line;
}

// A connection that always has data to send, and its receiver, which reads at once.
class Flow
{
  public:
    Flow(const Line& line, uint16_t port)
    {
        m_listener = Socket::CreateSocket(line.Last(), TcpSocketFactory::GetTypeId());
        m_listener->Bind(InetSocketAddress(Ipv4Address::GetAny(), port));
        m_listener->Listen();
        m_listener->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                                      MakeCallback(&Flow::Accepted, this));

        m_sender = Socket::CreateSocket(line.First(), TcpSocketFactory::GetTypeId());
        m_sender->Bind();
        m_sender->SetConnectCallback(MakeCallback(&Flow::Connected, this), MakeNullCallback<void, Ptr<Socket>>());
        m_sender->SetSendCallback(MakeCallback(&Flow::Write, this));
        m_sender->TraceConnectWithoutContext("CongestionWindow", MakeCallback(&Flow::Window, this));
        m_sender->TraceConnectWithoutContext("Tx", MakeCallback(&Flow::Sent, this));
        m_sender->Connect(InetSocketAddress(line.To(), port));
    }

    Flow(const Flow&) = delete;

    uint64_t Delivered() const
    {
        return m_delivered;
    }

    uint64_t Retransmits() const
    {
        return m_retransmits;
    }

  private:
    void Connected(Ptr<Socket> socket)
    {
        Write(socket, 0);
    }

    // Keeps four times the largest window in the send buffer: always enough to send. As in Linux, which tunes the
    // buffer, 64 MiB are the limit and not filled with packets that wait for nothing.
    void Write(Ptr<Socket> socket, uint32_t)
    {
        const uint64_t wanted = std::min(std::max(4 * m_window, WRITTEN_AHEAD), uint64_t{BUFFER - SEGMENT});
        while (BUFFER - socket->GetTxAvailable() < wanted && socket->Send(Create<Packet>(SEGMENT)) > 0)
        {
        }
    }

    void Window(uint32_t, uint32_t bytes)
    {
        m_window = std::max<uint64_t>(m_window, bytes);
    }

    void Sent(Ptr<const Packet> packet, const TcpHeader& header, Ptr<const TcpSocketBase>)
    {
        if (packet->GetSize() == 0)
        {
            return;
        }
        if (header.GetSequenceNumber() < m_next)
        {
            ++m_retransmits;
            return;
        }
        m_next = header.GetSequenceNumber() + packet->GetSize();
    }

    void Accepted(Ptr<Socket> socket, const Address&)
    {
        socket->SetRecvCallback(MakeCallback(&Flow::Read, this));
    }

    void Read(Ptr<Socket> socket)
    {
        while (auto packet = socket->Recv())
        {
            m_delivered += packet->GetSize();
        }
    }

    Ptr<Socket> m_listener;
    Ptr<Socket> m_sender;
    uint64_t m_window = 0;      // bytes, the largest so far
    SequenceNumber32 m_next{1}; // after the highest sequence number sent
    uint64_t m_retransmits = 0;
    uint64_t m_delivered = 0; // bytes
};

using Flows = std::vector<std::unique_ptr<Flow>>;

uint64_t
Total(const Flows& flows, uint64_t (Flow::*count)() const)
{
    return std::accumulate(flows.begin(), flows.end(), uint64_t{0}, [count](uint64_t sum, const auto& flow) {
        return sum + (flow.get()->*count)();
    });
}

// Seconds of processor time of this process so far.
double
ProcessorTime()
{
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

} // namespace

int
main(int argc, char** argv)
{
    const Options options = Parse(argc, argv);
    Line line = options.topology == "chain" ? Chain(options) : Path(options);
    line.Route();
    Flows flows;
    for (uint32_t i = 0; i < options.flows; ++i)
    {
        flows.push_back(std::make_unique<Flow>(line, FIRST_PORT + i));
    }

    std::vector<double> goodput; // Mbit/s of each second
    const double begun = ProcessorTime();
    uint64_t before = 0;
    for (uint32_t second = 1; second <= options.seconds; ++second)
    {
        Simulator::Stop(Seconds(second) - Simulator::Now());
        Simulator::Run();
        const uint64_t delivered = Total(flows, &Flow::Delivered);
        goodput.push_back((delivered - before) * 8e-6);
        before = delivered;
    }
    const double used = ProcessorTime() - begun;

    const double mean = std::accumulate(goodput.begin(), goodput.end(), 0.0) / goodput.size();
    double squares = 0;
    for (double value : goodput)
    {
        squares += (value - mean) * (value - mean);
    }
    const double std = goodput.size() > 1 ? std::sqrt(squares / (goodput.size() - 1)) : 0;
    std::cout << "{\"packets\": " << before / SEGMENT << ", \"cpu_s\": " << used << ", \"mean_mbps\": " << mean
              << ", \"std_mbps\": " << std << ", \"retransmits\": " << Total(flows, &Flow::Retransmits)
              << ", \"events\": " << Simulator::GetEventCount() << "}" << std::endl;
    Simulator::Destroy();
    return 0;
}
