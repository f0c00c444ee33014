//! Records of a pcap file: either byte order, micro- or nanoseconds.

use crate::decode::link::LinkType;
use crate::format::buffer::{Buffer, LARGEST};
use crate::format::problems::ReadError;
use crate::format::record::{Broken, Record};
use crate::format::source::packed_as;
use pcap_parser::nom::{Err, IResult, Needed};
use pcap_parser::{
    LegacyPcapBlock, PcapError, parse_pcap_frame, parse_pcap_frame_be, parse_pcap_frame_modified, parse_pcap_header,
};
use sawtooth_units::width::Low;

type ParseRecord = fn(&[u8]) -> IResult<&[u8], LegacyPcapBlock<'_>, PcapError<&[u8]>>;

pub struct Pcap {
    link: LinkType,
    /// Nanoseconds per unit of the fractional part.
    fraction_ns: u64,
    parse: ParseRecord,
}

const FILE_HEADER: usize = 24;

/// What the file is instead of a capture, if its first bytes show it.
fn neither(data: &[u8]) -> String {
    match packed_as(data) {
        Some(program) => format!("it is packed with {program}, which is not read here: unpack it first"),
        None => "it begins neither like pcap nor like pcapng".into(),
    }
}

impl Pcap {
    /// Reads the file header.
    pub fn open(buffer: &mut Buffer) -> Result<Self, ReadError> {
        let complete = buffer.need(FILE_HEADER);
        let header = match parse_pcap_header(buffer.data()) {
            Ok((_, header)) => header,
            Err(Err::Incomplete(_)) if !complete => {
                return Err(ReadError::NotACapture("it ends inside the file header of pcap".into()));
            }
            Err(_) => return Err(ReadError::NotACapture(neither(buffer.data()))),
        };
        buffer.pass(FILE_HEADER);
        // Above the link type are flags and the length of the frame check sequence.
        let link = LinkType::from_number(header.network.0.cast_unsigned().low_u16());
        let fraction_ns = if header.is_nanosecond_precision() { 1 } else { 1_000 };
        let parse: ParseRecord = match () {
            () if header.is_modified_format() => parse_pcap_frame_modified,
            () if header.is_bigendian() => parse_pcap_frame_be,
            () => parse_pcap_frame,
        };
        Ok(Pcap { link, fraction_ns, parse })
    }

    /// Passes one record; None at the end of the file.
    pub(crate) fn next_record(&self, buffer: &mut Buffer) -> Result<Option<Record>, Broken> {
        let byte = buffer.position();
        loop {
            let data = buffer.data();
            let missing = match (self.parse)(data) {
                // A real packet has bytes on the wire; disks contain zeros where a machine crashed.
                Ok((_, block)) if (block.ts_sec, block.ts_usec, block.caplen, block.origlen) == (0, 0, 0, 0) => {
                    return Err(Broken { byte, text: "zeros, which are no packet: damaged from here on".into() });
                }
                Ok((rest, block)) => {
                    let record = Record {
                        byte,
                        time_ns: u64::from(block.ts_sec) * 1_000_000_000 + u64::from(block.ts_usec) * self.fraction_ns,
                        link: self.link,
                        interface: None,
                        wire: block.origlen,
                        kept: block.data.len(),
                        behind: 0,
                    };
                    let length = data.len() - rest.len();
                    buffer.pass(length);
                    return Ok(Some(record));
                }
                Err(Err::Incomplete(Needed::Size(missing))) => missing.get(),
                Err(_) => return Err(Broken { byte, text: "this is no packet record".into() }),
            };
            // A record may claim more than 32 bits can hold, and lengths in a page have 32 bits.
            let claimed = data.len() as u64 + missing as u64;
            if claimed > LARGEST as u64 {
                return Err(Broken { byte, text: format!("the record claims {claimed} bytes: damaged from here on") });
            }
            let length = data.len() + missing;
            if !buffer.need(length) {
                let there = buffer.data().len();
                if there == 0 {
                    return Ok(None);
                }
                let text = format!("the file ends here, {there} bytes into a record of at least {length}");
                return Err(Broken { byte, text });
            }
        }
    }
}
