//! What a frame costs: cut and merged here, or by the batches of tun-rs.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use fullpipe_emulate::cut::cut;
use fullpipe_emulate::merge::Frame;
use fullpipe_emulate::namespace::on_a_thread;
use fullpipe_emulate::packet::Layout;
use fullpipe_emulate::privilege::Privilege;
use fullpipe_emulate::vnet::{self, Partial, VnetHeader};
use fullpipe_realtime::priority::processor_time;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{read, write};
use tun_rs::{DeviceBuilder, GROTable, IDEAL_BATCH_SIZE, SyncDevice, VIRTIO_NET_HDR_LEN};

const NEAR: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
const FAR: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);
const PORT: u16 = 5001;

/// Carries a frame from one device to the other: cuts it into packets of the wire, as a path wants
/// them, and merges them again; false: none was there.
trait Carry {
    fn carry(&mut self, from: &SyncDevice, to: &SyncDevice) -> io::Result<bool>;
}

/// As the emulator does it: packets are kept in the meantime.
struct Ours {
    input: Vec<u8>,
    piece: Vec<u8>,
    packets: Vec<(Vec<u8>, Option<Partial>)>,
    frame: Frame,
}

impl Carry for Ours {
    fn carry(&mut self, from: &SyncDevice, to: &SyncDevice) -> io::Result<bool> {
        let n = match read(from, &mut self.input) {
            Err(Errno::EAGAIN) => return Ok(false),
            n => n?,
        };
        let frame = &self.input[..n];
        let packet = &frame[vnet::LEN..];
        let (Some(header), Some(layout)) = (VnetHeader::decode(frame), Layout::of(packet)) else {
            return Ok(true);
        };
        let (mut many, packets) = (0, &mut self.packets);
        let kept = cut(
            &header,
            packet,
            &layout,
            &mut self.piece,
            |packet, partial| {
                if packets.len() == many {
                    packets.push((Vec::with_capacity(2048), None));
                }
                let (bytes, checksum) = &mut packets[many];
                bytes.clear();
                bytes.extend_from_slice(packet);
                *checksum = partial;
                many += 1;
            },
        );
        assert_eq!(kept, Ok(()));
        for (k, (packet, partial)) in self.packets[..many].iter().enumerate() {
            if k == 0 {
                self.frame.begin(packet, *partial, true);
            } else if !self.frame.append(packet, *partial) {
                write(to, self.frame.close())?;
                self.frame.begin(packet, *partial, true);
            }
        }
        write(to, self.frame.close())?;
        Ok(true)
    }
}

/// By `recv_multiple` and `send_multiple`, with checksums that are complete in between.
struct Theirs {
    input: Vec<u8>,
    packets: Vec<Vec<u8>>,
    sizes: Vec<usize>,
    table: GROTable,
}

impl Carry for Theirs {
    fn carry(&mut self, from: &SyncDevice, to: &SyncDevice) -> io::Result<bool> {
        let room = VIRTIO_NET_HDR_LEN;
        for packet in &mut self.packets {
            packet.resize(room + 1500, 0);
        }
        let got = from.recv_multiple(&mut self.input, &mut self.packets, &mut self.sizes, room);
        let many = match got {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            many => many?,
        };
        let packets = &mut self.packets[..many];
        for (packet, size) in packets.iter_mut().zip(&self.sizes) {
            packet.truncate(room + size);
        }
        to.send_multiple(&mut self.table, packets, room)?;
        Ok(true)
    }
}

/// A host of this thread's, which gets a namespace of its own.
fn host(address: Ipv4Addr) -> io::Result<SyncDevice> {
    unshare(CloneFlags::CLONE_NEWNET)?;
    let device = DeviceBuilder::new()
        .name("measured0")
        .offload(true)
        .ipv4(address, 24, None)
        .build_sync()?;
    device.set_nonblocking(true)?;
    Ok(device)
}

/// Bytes that a TCP flow gets through in `lasts`, and processor seconds of the thread between the
/// two devices.
fn carried(mut by: impl Carry + Send, lasts: Duration) -> io::Result<(f64, f64)> {
    // The sockets keep both namespaces.
    let (far, sink) = on_a_thread(|| {
        let device = host(FAR)?;
        io::Result::Ok((device, TcpListener::bind((FAR, PORT))?))
    })?;
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let (near_at, near_from) = std::sync::mpsc::channel();
        let over = &over;
        let path = scope.spawn(move || -> io::Result<f64> {
            let near: SyncDevice = near_from.recv().map_err(io::Error::other)?;
            let begin = processor_time();
            while !over.load(Ordering::Relaxed) {
                let mut ready = [&near, &far].map(|d| PollFd::new(d.as_fd(), PollFlags::POLLIN));
                poll(&mut ready, PollTimeout::from(20u8))?;
                for (from, to) in [(&near, &far), (&far, &near)] {
                    while by.carry(from, to)? {}
                }
            }
            Ok((processor_time() - begin).as_secs_f64())
        });
        let sender = scope.spawn(move || -> io::Result<()> {
            let device = host(NEAR)?;
            let _ = near_at.send(device);
            let mut sender = TcpStream::connect((FAR, PORT))?;
            let chunk = vec![0; 1 << 18];
            while !over.load(Ordering::Relaxed) {
                sender.write_all(&chunk)?;
            }
            Ok(())
        });
        let (mut sink, _) = sink.accept()?;
        let begin = std::time::Instant::now();
        let (mut bytes, mut chunk) = (0, vec![0; 1 << 20]);
        while begin.elapsed() < lasts {
            bytes += sink.read(&mut chunk)?;
        }
        over.store(true, Ordering::Relaxed);
        drop(sink);
        // A write that its end has come over.
        let _ = sender.join();
        let seconds = path.join().expect("no panic")?;
        Ok((bytes as f64, seconds))
    })
}

/// Prints gigabytes per processor second of the thread that carries them, of both in turns, and the
/// ratio: `cargo test --release -p fullpipe-emulate --test it -- --ignored --nocapture device`.
#[test]
#[ignore = "a measurement, of optimized builds"]
fn what_a_frame_costs_here_and_by_batches_of_tun_rs() {
    if let Err(why) = Privilege::take() {
        return eprintln!("skipped: {why}");
    }
    let lasts = Duration::from_secs(3);
    let per_second = |(bytes, seconds): (f64, f64)| bytes / 1e9 / seconds;
    let mut ratios = Vec::new();
    for _ in 0..5 {
        let ours = Ours {
            input: vec![0; vnet::LEN + 65_535],
            piece: Vec::with_capacity(2048),
            packets: Vec::new(),
            frame: Frame::new(),
        };
        let room = (0..IDEAL_BATCH_SIZE).map(|_| Vec::with_capacity(65_545));
        let theirs = Theirs {
            input: vec![0; VIRTIO_NET_HDR_LEN + 65_535],
            packets: room.collect(),
            sizes: vec![0; IDEAL_BATCH_SIZE],
            table: GROTable::default(),
        };
        let ours = per_second(carried(ours, lasts).unwrap());
        let theirs = per_second(carried(theirs, lasts).unwrap());
        println!("{ours:.2} GB per processor second here, {theirs:.2} by tun-rs");
        ratios.push(ours / theirs);
    }
    ratios.sort_by(f64::total_cmp);
    println!(
        "ratio: {:.2} ({:.2} to {:.2})",
        ratios[2], ratios[0], ratios[4]
    );
}
