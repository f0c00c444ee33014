#include "card.h"

using namespace ns3;

Transmitter::Transmitter(DataRate rate, uint32_t queuePackets)
    : m_rate(rate),
      m_queuePackets(queuePackets)
{
}

bool
Transmitter::Take(uint32_t frameBytes, Time& departure)
{
    const Time now = Simulator::Now();
    while (!m_starts.empty() && m_starts.front() <= now)
    {
        m_starts.pop_front();
    }
    if (m_starts.size() >= m_queuePackets)
    {
        return false;
    }
    const Time start = Max(now, m_free);
    m_starts.push_back(start);
    m_free = start + m_rate.CalculateBytesTxTime(frameBytes);
    departure = m_free;
    return true;
}

void
LinkDevice::Attach(Ptr<LinkDevice> peer, Ptr<Transmitter> transmitter, Time delay, uint32_t overhead)
{
    m_peer = peer;
    m_transmitter = transmitter;
    m_delay = delay;
    m_overhead = overhead;
    m_random = CreateObject<UniformRandomVariable>();
    SetAttribute("PointToPointMode", BooleanValue(true)); // no ARP
}

void
LinkDevice::LoseBeforeQueue(double loss)
{
    m_lossBefore = loss;
}

void
LinkDevice::LoseAfterTransmitter(double loss)
{
    m_lossAfter = loss;
}

bool
LinkDevice::Lost(double probability)
{
    return probability > 0 && m_random->GetValue() < probability;
}

bool
LinkDevice::Send(Ptr<Packet> packet, const Address&, uint16_t protocol)
{
    // TCP isn't told of a loss, as it would be by `false`.
    if (Lost(m_lossBefore))
    {
        return true;
    }
    Time departure = Simulator::Now();
    if (m_transmitter && !m_transmitter->Take(packet->GetSize() + m_overhead, departure))
    {
        return true;
    }
    if (Lost(m_lossAfter))
    {
        return true;
    }
    Simulator::ScheduleWithContext(m_peer->GetNode()->GetId(),
                                   departure - Simulator::Now() + m_delay,
                                   &LinkDevice::Arrive,
                                   m_peer,
                                   packet,
                                   protocol,
                                   Mac48Address::ConvertFrom(GetAddress()));
    return true;
}

void
LinkDevice::Arrive(Ptr<Packet> packet, uint16_t protocol, Mac48Address from)
{
    Receive(packet, protocol, Mac48Address::ConvertFrom(GetAddress()), from);
}

void
LinkDevice::DoDispose()
{
    m_peer = nullptr;
    m_transmitter = nullptr;
    m_random = nullptr;
    SimpleNetDevice::DoDispose();
}
