//! Receiving applications that read late, and senders' probes of the windows that close meanwhile.

use crate::calendar::Calendar;
use crate::frames::HEADERS;
use crate::hosts::{Hosts, Outside};
use crate::packet::{Kind, Packet};
use sawtooth_tcp::packet::Burst;
use sawtooth_tcp::receiver::Receiver;
use sawtooth_units::width::Fit;

impl Hosts {
    /// The receiving application gets the connection. If it reads at given times, the first one is now.
    #[cold]
    pub(super) fn accept<C: Calendar>(&mut self, index: u32, receiver: &mut Receiver, outside: &mut Outside<C>) {
        let connection = &mut self.connections[index as usize];
        let Some(reads) = self.scenario.flows[connection.flow as usize].traffic.reads() else { return };
        connection.accepted = outside.now;
        let (clock, next) = (connection.receiver_clock(outside.now), reads.next(outside.now, outside.now));
        if reads.partial {
            receiver.read_some(reads.bytes, next.since(outside.now), clock, &mut |_| {});
        } else {
            receiver.read(reads.bytes, next, clock, &mut |_| {});
        }
    }

    /// Everything of one instant has arrived: the application reads.
    #[cold]
    pub(super) fn wake<C: Calendar>(&mut self, index: u32, receiver: &mut Receiver, outside: &mut Outside<C>) {
        let connection = &self.connections[index as usize];
        let (flow, clock) = (connection.flow, connection.receiver_clock(outside.now));
        let before = receiver.delivered();
        receiver.wake(clock, &mut |ack| self.send_ack(index, ack, outside));
        self.delivered[flow as usize].bytes += receiver.delivered() - before;
    }

    /// The application reads again.
    #[cold]
    pub(super) fn read<C: Calendar>(&mut self, index: u32, receiver: &mut Receiver, outside: &mut Outside<C>) {
        let connection = &mut self.connections[index as usize];
        let (flow, accepted, clock) = (connection.flow, connection.accepted, connection.receiver_clock(outside.now));
        let Some(reads) = self.scenario.flows[flow as usize].traffic.reads() else { return };
        let before = receiver.delivered();
        if reads.partial {
            let pause = reads.next(outside.now, outside.now).since(outside.now);
            receiver.read_some(reads.bytes, pause, clock, &mut |ack| self.send_ack(index, ack, outside));
        } else {
            let next = reads.next(accepted, outside.now);
            receiver.read(reads.bytes, next, clock, &mut |ack| self.send_ack(index, ack, outside));
        }
        self.delivered[flow as usize].bytes += receiver.delivered() - before;
    }

    /// The application has read everything that the other end wrote: it closes.
    #[cold]
    pub(super) fn finish_reading<C: Calendar>(
        &mut self,
        index: u32,
        receiver: &mut Receiver,
        outside: &mut Outside<C>,
    ) {
        let connection = &self.connections[index as usize];
        if connection.is_sending() {
            let clock = connection.receiver_clock(outside.now);
            receiver.close(clock, &mut |ack| self.send_ack(index, ack, outside));
        }
    }

    #[cold]
    pub(super) fn send_window_probe<C: Calendar>(&mut self, index: u32, probe: Burst, outside: &mut Outside<C>) {
        let connection = &self.connections[index as usize];
        let size = (HEADERS + connection.options()).fit_u16();
        let packet = Packet {
            seq: probe.start,
            tsval: probe.tsval,
            tsecr: probe.tsecr,
            generation: connection.generation,
            ..Packet::new(index, Kind::WindowProbe, size, connection.forward_at)
        };
        self.forward(packet, outside);
    }

    #[cold]
    pub(super) fn take_window_probe<C: Calendar>(&mut self, packet: Packet, outside: &mut Outside<C>) {
        let index = packet.owner;
        let connection = &mut self.connections[index as usize];
        let clock = connection.receiver_clock(outside.now);
        if packet.generation != connection.receiver_generation {
            return;
        }
        let Some(mut receiver) = connection.receiver.take() else { return };
        receiver.on_window_probe(clock, &mut |ack| self.send_ack(index, ack, outside));
        self.put_receiver(index, receiver, clock, outside);
    }
}
