// A host's network card for ns-3 with the meaning that sawtooth gives to a link direction: Bernoulli loss, then a
// tail-drop queue that counts waiting packets only, then a transmitter that all links leaving the host may share, then
// delay. ns-3's own devices have a transmitter each, so they can't be the same network.
#pragma once

#include "ns3/core-module.h"
#include "ns3/network-module.h"

#include <deque>

// One transmitter, first come first served. It takes no event: when a frame leaves is known when it comes.
class Transmitter : public ns3::SimpleRefCount<Transmitter>
{
  public:
    Transmitter(ns3::DataRate rate, uint32_t queuePackets);

    // When the frame's last bit will have left; false where the queue is full.
    bool Take(uint32_t frameBytes, ns3::Time& departure);

  private:
    ns3::DataRate m_rate;
    uint32_t m_queuePackets;
    ns3::Time m_free;               // when the last frame taken will have left
    std::deque<ns3::Time> m_starts; // of frames that may still wait
};

// One direction of a link, leaving a node. It has no ns-3 channel: it hands packets to its peer.
class LinkDevice : public ns3::SimpleNetDevice
{
  public:
    // A null transmitter is unlimited. `overhead` is what a frame has more than its IP packet, in bytes.
    void Attach(ns3::Ptr<LinkDevice> peer, ns3::Ptr<Transmitter> transmitter, ns3::Time delay, uint32_t overhead);
    // Probabilities.
    void LoseBeforeQueue(double loss);
    void LoseAfterTransmitter(double loss);

    bool Send(ns3::Ptr<ns3::Packet> packet, const ns3::Address& to, uint16_t protocol) override;

  protected:
    void DoDispose() override;

  private:
    bool Lost(double probability);
    void Arrive(ns3::Ptr<ns3::Packet> packet, uint16_t protocol, ns3::Mac48Address from);

    ns3::Ptr<LinkDevice> m_peer;
    ns3::Ptr<Transmitter> m_transmitter;
    ns3::Time m_delay;
    uint32_t m_overhead = 0;
    double m_lossBefore = 0;
    double m_lossAfter = 0;
    ns3::Ptr<ns3::UniformRandomVariable> m_random;
};
