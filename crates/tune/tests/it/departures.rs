//! Departure times of an initial window, as the program gives them to sch_fq: a second program
//! behind it reads what packets carry. Whether the kernel has sch_fq does not matter here.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fullpipe_emulate::namespace::{DEVICE, Side, addresses};
use fullpipe_emulate::netlink::Links;
use fullpipe_emulate::queues::Hook;
use fullpipe_policy::Via;
use libbpf_rs::libbpf_sys::{self, bpf_insn};
use libbpf_rs::{MapHandle, MapType, RingBufferBuilder};

use crate::spreading::{GAP_MS, WINDOW, road, spread};
use crate::support::{Ground, policy};

/// Time stamp, ns, and length, bytes, of a packet.
type Packet = (u64, u64);

fn instruction(code: u8, to: u8, from: u8, offset: i16, constant: i32) -> bpf_insn {
    let mut instruction = bpf_insn {
        code,
        off: offset,
        imm: constant,
        ..bpf_insn::default()
    };
    instruction.set_dst_reg(to);
    instruction.set_src_reg(from);
    instruction
}

/// Notes `tstamp` and `len` of `struct __sk_buff` (linux/bpf.h) of every packet in a ring buffer,
/// and classifies none.
#[allow(unsafe_code)]
fn reader(ring: &MapHandle) -> io::Result<OwnedFd> {
    const MOVE: u8 = 0xbf;
    const LOAD_64: u8 = 0x79;
    const LOAD_32: u8 = 0x61;
    const STORE_64: u8 = 0x7b;
    const ADD: u8 = 0x07;
    const SET: u8 = 0xb7;
    const SET_64: u8 = 0x18;
    const CALL: u8 = 0x85;
    const EXIT: u8 = 0x95;
    const MAP: u8 = 1;
    const RINGBUF_OUTPUT: i32 = 130;
    let program = [
        instruction(LOAD_64, 2, 1, 152, 0),
        instruction(STORE_64, 10, 2, -16, 0),
        instruction(LOAD_32, 2, 1, 0, 0),
        instruction(STORE_64, 10, 2, -8, 0),
        instruction(SET_64, 1, MAP, 0, ring.as_fd().as_raw_fd()),
        instruction(0, 0, 0, 0, 0),
        instruction(MOVE, 2, 10, 0, 0),
        instruction(ADD, 2, 0, 0, -16),
        instruction(SET, 3, 0, 0, 16),
        instruction(SET, 4, 0, 0, 0),
        instruction(CALL, 0, 0, 0, RINGBUF_OUTPUT),
        instruction(SET, 0, 0, 0, 0),
        instruction(EXIT, 0, 0, 0, 0),
    ];
    // SAFETY: names and instructions outlive the call, which copies them; no options are given.
    let fd = unsafe {
        libbpf_sys::bpf_prog_load(
            libbpf_sys::BPF_PROG_TYPE_SCHED_CLS,
            c"reader".as_ptr(),
            c"Dual MIT/GPL".as_ptr(),
            program.as_ptr(),
            program.len() as _,
            std::ptr::null_mut(),
        )
    };
    match fd {
        // SAFETY: the kernel has just given it.
        0.. => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        error => Err(io::Error::from_raw_os_error(-error)),
    }
}

#[test]
fn segments_of_an_initial_window_carry_their_departures() {
    let Some(ground) = Ground::new(&[road(), road()]) else {
        return;
    };
    let Some((mut tuner, classifiers)) = ground.tuner_with_classifiers() else {
        return;
    };
    let options = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as u64,
        ..Default::default()
    };
    let ring = MapHandle::create(MapType::RingBuf, Some("packets"), 0, 0, 1 << 16, &options);
    let ring = ring.unwrap();
    let reader = reader(&ring).unwrap();
    ground.on_near(move || {
        let mut links = Links::open()?;
        links.put_egress(DEVICE)?;
        let departure = classifiers.departure.as_fd();
        links.put_program(DEVICE, Hook::Egress, 0x100, departure, "fp_departure")?;
        links.put_program(DEVICE, Hook::Egress, 0x101, reader.as_fd(), "reader")
    });
    let seen: Arc<Mutex<Vec<Packet>>> = Arc::default();
    let into = Arc::clone(&seen);
    let mut incoming = RingBufferBuilder::new();
    let taken = incoming.add(&ring, move |bytes: &[u8]| {
        let word = |at: usize| u64::from_ne_bytes(*bytes[at..].first_chunk().unwrap());
        into.lock().unwrap().push((word(0), word(8)));
        0
    });
    taken.unwrap();
    let incoming = incoming.build().unwrap();
    tuner
        .apply(policy(vec![spread("spread", 0, Via::Auto)]))
        .unwrap();
    let data = |k: usize| {
        seen.lock().unwrap().clear();
        let (near, _far) = ground.pair(Side::Near, addresses(Side::Far, k).0);
        near.set_nonblocking(true).unwrap();
        assert!(io::Write::write(&mut &near, &[0; 100_000]).unwrap() > 50_000);
        std::thread::sleep(Duration::from_millis(200));
        incoming.consume().unwrap();
        let seen = seen.lock().unwrap();
        let data = seen.iter().filter(|(_, bytes)| *bytes > 1000);
        data.copied().collect::<Vec<Packet>>()
    };
    let spaced = data(0);
    assert_eq!(spaced.len(), WINDOW as usize, "{spaced:?}");
    assert!(spaced.iter().all(|(_, bytes)| *bytes == 1500), "{spaced:?}");
    let gaps = spaced.windows(2).map(|w| (w[1].0 - w[0].0) as f64 / 1e6);
    let gaps: Vec<f64> = gaps.collect();
    // The first ten come at once: each has the time that the one before left to it.
    assert!(
        gaps[..9].iter().all(|gap| (gap - GAP_MS).abs() < 1e-3),
        "{gaps:?}"
    );
    // From then on TCP's own pacing may be behind the schedule; nothing is before it.
    let sum: f64 = gaps.iter().sum();
    assert!(gaps.iter().all(|gap| *gap > GAP_MS - 1e-3), "{gaps:?}");
    assert!(
        sum < 1.15 * GAP_MS * gaps.len() as f64,
        "{sum} ms: {gaps:?}"
    );
    assert_eq!(tuner.counters().unwrap().spread, spaced.len() as u64);
    // Others have no departures but those of TCP itself.
    let others = data(1);
    assert!(!others.is_empty());
    assert_eq!(tuner.counters().unwrap().spread, spaced.len() as u64);
    tuner.finish().unwrap();
}
