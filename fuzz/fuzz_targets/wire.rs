//! No bytes make the reader of datagrams panic, and what it accepts is written as the same bytes.
#![no_main]

use fullpipe_net::wire::Parsed;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(datagram) = Parsed::decode(bytes) {
        let mut out = vec![0xaa; bytes.len()];
        assert_eq!(datagram.encode(&mut out), bytes.len());
        assert_eq!(out, bytes);
    }
});
