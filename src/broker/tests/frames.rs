//! Frames out of a byte stream (hostile inputs H1, H2, H3; network N13).

use broker::connection::{FrameBuffer, FrameError};

const LIMIT: usize = 1000;

fn buffer(bytes: &[u8]) -> FrameBuffer {
    let mut frames = FrameBuffer::default();
    frames.buffer().extend_from_slice(bytes);
    frames
}

#[test]
fn a_frame_may_arrive_byte_by_byte_and_several_at_once() {
    let stream = b"\0\0\0\x03abc\0\0\0\x01d\0\0\0\x02ef";
    for cut in 0..stream.len() {
        let mut frames = buffer(&stream[..cut]);
        let mut seen = Vec::new();
        while let Some(frame) = frames.next_frame(LIMIT).unwrap() {
            seen.push(frame);
        }
        frames.buffer().extend_from_slice(&stream[cut..]);
        while let Some(frame) = frames.next_frame(LIMIT).unwrap() {
            seen.push(frame);
        }
        assert_eq!(seen, ["abc", "d", "ef"].map(bytes::Bytes::from), "cut at {cut}");
    }
}

#[test]
fn lengths_that_are_not_positive_end_the_connection() {
    for length in [0i32, -1, i32::MIN] {
        let wrong = buffer(&length.to_be_bytes()).next_frame(LIMIT).unwrap_err();
        assert_eq!(wrong, FrameError::NotPositive(length));
    }
}

#[test]
fn a_frame_above_the_limit_is_refused_before_anything_is_allocated_for_it() {
    let mut frames = buffer(&1001i32.to_be_bytes());
    let wrong = frames.next_frame(LIMIT).unwrap_err();
    assert_eq!(wrong, FrameError::TooLarge { length: 1001, limit: LIMIT });
    assert!(frames.buffer().capacity() < 1001);
    let http = buffer(b"GET / HTTP/1.1").next_frame(LIMIT).unwrap_err().to_string();
    assert!(http.contains("HTTP"), "{http}");
    let tls = buffer(&[0x16, 3, 1, 0, 5]).next_frame(LIMIT).unwrap_err().to_string();
    assert!(tls.contains("TLS"), "{tls}");
}

#[test]
fn the_buffer_asks_for_no_more_than_what_has_arrived_doubled() {
    let step = 64;
    let mut frames = buffer(&[0; 0]);
    assert_eq!(frames.wanted(step), step);
    // 100 MiB are claimed, one byte has come.
    frames.buffer().extend_from_slice(&(100i32 << 20).to_be_bytes());
    frames.buffer().extend_from_slice(&[1]);
    assert_eq!(frames.wanted(step), step);
    frames.buffer().extend_from_slice(&[1; 500]);
    assert_eq!(frames.wanted(step), 505);
    // Never beyond the frame itself, but for one step of what may follow.
    let mut short = buffer(&200i32.to_be_bytes());
    short.buffer().extend_from_slice(&[1; 150]);
    assert_eq!(short.wanted(step), step);
}
