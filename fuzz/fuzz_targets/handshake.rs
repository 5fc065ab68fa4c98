//! Any sequence of datagrams, valid ones bent among them, against the gate of a server and the
//! opening of a client: nothing panics, no answer is longer than its question, nothing is
//! remembered but cookies of sessions.
#![no_main]

use std::net::SocketAddr;

use fullpipe_net::session::cookie::CookieJar;
use fullpipe_net::session::message::{self, Ask, Nonce, Open};
use fullpipe_net::session::{Gate, GateOutput, Handshake, Identity, Key};
use fullpipe_net::wire::SessionId;
use fullpipe_units::{Span, Time};
use libfuzzer_sys::fuzz_target;

fn numbers<const N: usize>() -> Box<dyn FnMut() -> [u8; N] + Send> {
    let mut n = 0;
    Box::new(move || {
        n += 1;
        [n; N]
    })
}

fuzz_target!(|input: &[u8]| {
    let key = Key::from_text(&"k".repeat(40), "fuzz").expect("long enough");
    let identity = Identity::from_private([7; 32]);
    let jar = CookieJar::new(Time::ZERO, numbers());
    let mut gate = Gate::new(key.clone(), identity.clone(), jar);
    let ask = Ask {
        kind: 1,
        options: 0,
        length: 700,
        digest: [9; 32],
    };
    let mut client = Handshake::new(Time::ZERO, Span::from_secs(60), key.clone(), ask, numbers());
    let here: SocketAddr = "192.0.2.1:1000".parse().expect("an address");
    let mut now = Time::ZERO;
    let mut sessions = 0;
    // What the client or the gate said last: the datagram that the next step bends, or brings as it
    // is.
    let mut last = message::hello(&Nonce([1; 16])).to_vec();
    let mut rest = input;
    while let Some((&step, more)) = rest.split_first() {
        rest = more;
        let mut take = |n: usize| {
            let (head, tail) = rest.split_at(n.min(rest.len()));
            rest = tail;
            head
        };
        match step % 8 {
            0 => {
                // Three bytes: a place and what comes there.
                if let [a, b, with] = *take(3) {
                    let place = usize::from(u16::from_be_bytes([a, b])) % last.len().max(1);
                    if let Some(byte) = last.get_mut(place) {
                        *byte = with;
                    }
                }
            }
            1 => last.truncate(take(2).iter().fold(0, |n, b| n << 8 | usize::from(*b))),
            2 => last = take(usize::from(step) * 4).to_vec(),
            3 => now = now + Span::from_millis(u64::from(step) * 40),
            4 | 5 => {
                let heard = gate.handle(now, here, &last);
                let question = last.len();
                match heard {
                    GateOutput::Nothing => {}
                    GateOutput::Answer(answer) => last = answer,
                    GateOutput::Open(mut opened) => {
                        sessions += 1;
                        let session = SessionId(sessions);
                        if let Some((accept, _)) = gate.accept(now, &mut opened, session) {
                            last = accept;
                        }
                    }
                }
                assert!(last.len() <= question);
                assert!(gate.remembered() as u64 <= sessions);
                assert!(gate.counts().bytes_out <= gate.counts().bytes_in);
            }
            6 => match client.poll(now) {
                Ok(Some(datagram)) => last = datagram,
                Ok(None) => now = client.next_timeout(),
                Err(_) => return,
            },
            _ => match client.handle(now, &last) {
                Ok(Some((secrets, _))) => assert!(secrets.session.0 <= sessions),
                Ok(None) => {}
                Err(_) => return,
            },
        }
        let _ = message::read_cookie(&last);
        let _ = message::read_refuse(&last);
        if let Ok(open) = Open::read(&last) {
            let _ = open.understand(&key, &identity);
        }
    }
});
