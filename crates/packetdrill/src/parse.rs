//! Parses the part of packetdrill's language that scripts for a TCP sender use.

use crate::cursor::{Cursor, Unreadable};
use crate::script::{Action, Call, Event, Mark, Packet, Script, TcpOption, When};
use sawtooth_tcp::packet::Ecn;

/// One day in microseconds, so that sums of a script's times cannot overflow.
const LONGEST_US: i64 = 86_400_000_000;

/// Parses a script.
///
/// # Errors
///
/// The first text that is not in the language, or not in the supported part.
pub fn parse(text: &str) -> Result<Script, Unreadable> {
    let mut at = Cursor::new(text);
    let mut script = Script::default();
    loop {
        at.skip_space()?;
        if at.peek().is_none() {
            return Ok(script);
        }
        if at.accept("--") {
            let line = at.line_end().trim();
            let (name, value) = line.split_once('=').unwrap_or((line, ""));
            script.options.push((name.to_owned(), value.to_owned()));
        } else if at.accept("#include") {
            return Err(at.unreadable("#include"));
        } else {
            script.events.push(event(&mut at)?);
        }
    }
}

fn event(at: &mut Cursor) -> Result<Event, Unreadable> {
    let line = at.line;
    let when = if at.rest().starts_with(['`', '%']) { When::Any } else { time(at)? };
    at.skip_space()?;
    let action = if at.accept("<") {
        Action::Inbound(packet(at)?)
    } else if at.accept(">") {
        Action::Outbound(packet(at)?)
    } else if at.accept("`") {
        Action::Command(at.until("`")?.to_owned())
    } else if at.accept("%{") {
        Action::Assertions(at.until("}%")?.to_owned())
    } else {
        Action::Call(call(at)?)
    };
    Ok(Event { line, when, action })
}

fn time(at: &mut Cursor) -> Result<When, Unreadable> {
    if at.accept("*") {
        return Ok(When::Any);
    }
    let relative = at.accept("+");
    let start_us = micros(at)?;
    let mut end_us = start_us;
    at.skip_blanks();
    if at.accept("~") {
        at.skip_blanks();
        at.accept("+");
        end_us = micros(at)?;
    } else if at.accept("...") {
        // The time at which a blocking call returns. Such calls are not run.
        at.skip_blanks();
        micros(at)?;
    }
    Ok(if relative { When::Relative { start_us, end_us } } else { When::Absolute { start_us, end_us } })
}

/// Decimal seconds, returned in microseconds.
fn micros(at: &mut Cursor) -> Result<i64, Unreadable> {
    let whole = at.take_while(|c| c.is_ascii_digit());
    let mut fraction = "";
    if at.peek() == Some('.') && !at.rest().starts_with("..") {
        at.accept(".");
        fraction = at.take_while(|c| c.is_ascii_digit());
    }
    if whole.is_empty() && fraction.is_empty() {
        return Err(at.unreadable("a time expected"));
    }
    let padded = format!("{whole}{fraction:0<6}");
    let us = padded[..whole.len() + 6].parse().unwrap_or(i64::MAX);
    if us > LONGEST_US { Err(at.unreadable("a time of more than a day")) } else { Ok(us) }
}

/// The rest of a packet's line after its direction.
fn packet(at: &mut Cursor) -> Result<Packet, Unreadable> {
    let mut packet = Packet::default();
    at.skip_blanks();
    if at.accept("[") {
        let line = at.line;
        packet.mark = mark(at.until("]")?, line)?;
        at.skip_blanks();
    }
    packet.flags = at.take_while(|c| c.is_ascii_uppercase() || c == '.' || c == '-').to_owned();
    if packet.flags.is_empty() {
        return Err(at.unreadable("a packet other than TCP over IP"));
    }
    at.skip_blanks();
    packet.start = at.number()?;
    at.expect(":")?;
    at.number()?;
    at.expect("(")?;
    packet.length = at.number()?;
    at.expect(")")?;
    loop {
        at.skip_blanks();
        if at.accept("ack ") {
            at.skip_blanks();
            packet.ack = Some(at.number()?);
        } else if at.accept("win ") {
            at.skip_blanks();
            packet.window = Some(at.number()?);
        } else if at.accept("<") {
            let line = at.line;
            let text = at.until(">")?;
            packet.any_options = text.trim() == "...";
            packet.options = if packet.any_options { Vec::new() } else { options(text, line)? };
        } else if at.accept("urg ") {
            at.skip_blanks();
            at.number()?;
            packet.options.push(TcpOption::Other("urgent data".to_owned()));
        } else if matches!(at.peek(), None | Some('\n' | '\r')) || at.rest().starts_with("//") {
            return Ok(packet);
        } else {
            return Err(at.unreadable(format!("after a packet: {}", at.clone().line_end().trim())));
        }
    }
}

/// What is between the brackets before a packet's flags: the ECN field, or others of the IP header.
fn mark(text: &str, line: usize) -> Result<Option<Mark>, Unreadable> {
    Ok(Some(match text.trim() {
        "noecn" => Mark::Is(Ecn::NotEct),
        "ect0" => Mark::Is(Ecn::Ect0),
        "ect1" => Mark::Is(Ecn::Ect1),
        "ce" => Mark::Is(Ecn::Ce),
        "ect01" => Mark::Ect,
        other => return Err(Unreadable { line, what: format!("a field of the IP header: {other}") }),
    }))
}

fn options(text: &str, line: usize) -> Result<Vec<TcpOption>, Unreadable> {
    text.split(',').map(|option| tcp_option(option.trim(), line)).collect()
}

fn tcp_option(text: &str, line: usize) -> Result<TcpOption, Unreadable> {
    let (name, value) = text.split_once(' ').unwrap_or((text, ""));
    let mut at = Cursor::at_line(value.trim(), line);
    Ok(match name {
        "nop" | "eol" | "" => TcpOption::Nothing,
        "mss" => TcpOption::Mss(at.number()?),
        "sackOK" => TcpOption::SackPermitted,
        "wscale" => TcpOption::WindowScale(at.number()? as u32),
        "TS" => {
            at.expect("val ")?;
            at.skip_blanks();
            let value = at.number()? as u32;
            at.skip_blanks();
            at.expect("ecr ")?;
            at.skip_blanks();
            TcpOption::Timestamps(value, at.number()? as u32)
        }
        "sack" => {
            let mut blocks = Vec::new();
            while at.peek().is_some() {
                let start = at.number()?;
                at.expect(":")?;
                blocks.push((start, at.number()?));
                at.skip_blanks();
            }
            TcpOption::Sack(blocks)
        }
        other => TcpOption::Other(other.to_owned()),
    })
}

fn call(at: &mut Cursor) -> Result<Call, Unreadable> {
    let name = at.take_while(|c| c.is_ascii_alphanumeric() || c == '_').to_owned();
    if name.is_empty() || at.peek() != Some('(') {
        return Err(at.unreadable(format!("an event expected: {}", at.clone().line_end().trim())));
    }
    at.accept("(");
    let mut arguments = vec![String::new()];
    let mut depth = 0;
    loop {
        let Some(c) = at.peek() else { return Err(at.unreadable("`)` is missing")) };
        let piece = at.take_char();
        match c {
            ')' if depth == 0 => break,
            ',' if depth == 0 => {
                arguments.push(String::new());
                continue;
            }
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        arguments.last_mut().expect("there is always one").push_str(piece);
    }
    for argument in &mut arguments {
        *argument = argument.trim().to_owned();
    }
    at.skip_space()?;
    at.expect("=")?;
    let line = at.line_end();
    let result = line.split("//").next().unwrap_or_default().trim().to_owned();
    Ok(Call { name, arguments, result })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(text: &str) -> Event {
        let script = parse(text).expect("readable");
        assert_eq!(script.events.len(), 1);
        script.events[0].clone()
    }

    #[test]
    fn times_are_absolute_relative_or_ranges() {
        let when = |text: &str| only(&format!("{text} `true`")).when;
        assert_eq!(when("0"), When::Absolute { start_us: 0, end_us: 0 });
        assert_eq!(when("1.25"), When::Absolute { start_us: 1_250_000, end_us: 1_250_000 });
        assert_eq!(when("+.005"), When::Relative { start_us: 5_000, end_us: 5_000 });
        assert_eq!(when("+.3~+.31"), When::Relative { start_us: 300_000, end_us: 310_000 });
        assert_eq!(when("+0...0.010"), When::Relative { start_us: 0, end_us: 0 });
        assert_eq!(when("*"), When::Any);
    }

    #[test]
    fn packet_line_is_parsed() {
        let event = only("+0 < . 1:1(0) ack 1001 win 320 <sack 2001:3001 5001:6001,nop,nop> // listed twice");
        let Action::Inbound(packet) = event.action else { panic!("{event:?}") };
        assert_eq!((packet.start, packet.length, packet.ack, packet.window), (1, 0, Some(1001), Some(320)));
        assert_eq!(packet.options[0], TcpOption::Sack(vec![(2001, 3001), (5001, 6001)]));
        let event = only("+0 > S. 0:0(0) ack 1 <mss 900,sackOK,TS val 7 ecr 0,nop,wscale 8>");
        let Action::Outbound(packet) = event.action else { panic!("{event:?}") };
        assert!(packet.has('S') && packet.has('.') && packet.mark.is_none());
        assert_eq!(
            packet.options,
            [
                TcpOption::Mss(900),
                TcpOption::SackPermitted,
                TcpOption::Timestamps(7, 0),
                TcpOption::Nothing,
                TcpOption::WindowScale(8)
            ]
        );
    }

    #[test]
    fn call_may_span_lines_and_nest_brackets() {
        let event = only("+.1 sendmsg(4, {name(...)=...,\n iov(1)=[{..., 40}], flags=0}, 0) = 40 // bytes\n");
        let Action::Call(call) = event.action else { panic!("{event:?}") };
        assert_eq!((call.name.as_str(), call.arguments.len(), call.result.as_str()), ("sendmsg", 3, "40"));
    }

    #[test]
    fn event_has_its_line_number() {
        let script =
            parse("--tolerance_usecs=9000\n/* two\nlines */\n`a\nb`\n+0 %{\nassert 1\n}%\n+0 > . 1:2(1) ack 1\n");
        let script = script.expect("readable");
        assert_eq!(script.options, [("tolerance_usecs".to_owned(), "9000".to_owned())]);
        assert_eq!(script.events.iter().map(|e| e.line).collect::<Vec<_>>(), [4, 6, 9]);
    }

    #[test]
    fn parse_error_has_its_line_number() {
        assert_eq!(parse("\n+0 > udp (10)").expect_err("not TCP").line, 2);
        assert_eq!(parse("+0 frobnicate").expect_err("no event").line, 1);
        assert!(parse("`never closed").is_err());
        assert!(parse("+99999999999999999999 `true`").is_err());
    }
}
