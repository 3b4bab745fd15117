//! The codecs: round trips at every level, foreign variants of the formats, and the bounds under
//! which hostile data is decompressed.

use std::io::Write;

use proptest::prelude::*;
use protocol::batch::{
    Codec, Compression, DecompressError, compress, decompress, decompressed_bytes_max,
};

const MIB: usize = 1 << 20;

/// Words that repeat at many distances, with numbers between them.
fn text(bytes: usize) -> Vec<u8> {
    let words = ["partition", "leader", "epoch", "offset", "batch", "segment", "replica"];
    let mut state = 1_u64;
    let mut out = Vec::new();
    while out.len() < bytes {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let word = words[(state >> 33) as usize % words.len()];
        out.extend_from_slice(format!("{word} {} ", (state >> 40) % 1_000).as_bytes());
    }
    out.truncate(bytes);
    out
}

fn levels() -> Vec<Compression> {
    let mut all = vec![Compression::None, Compression::Snappy];
    all.extend((-1..=9).map(|level| Compression::Gzip { level }));
    all.extend((1..=17).map(|level| Compression::Lz4 { level }));
    all.extend([-131_072, -5, 1, 3, 12, 19, 22].map(|level| Compression::Zstd { level }));
    all
}

#[test]
fn every_level_of_every_codec_is_read_back() {
    for bytes in [0, 1, 12, 13, (64 << 10) + 1] {
        let payload = text(bytes);
        for compression in levels() {
            let packed = compress(compression, &payload);
            let unpacked = decompress(compression.codec(), &packed, MIB);
            assert_eq!(unpacked.as_deref(), Ok(&payload[..]), "{compression:?}, {bytes} bytes");
        }
    }
}

/// `compression.*.level` means something: harder work gives fewer bytes.
#[test]
fn higher_levels_compress_better() {
    let payload = text(300_000);
    let size = |compression| compress(compression, &payload).len();
    for (low, high) in [
        (Compression::Gzip { level: 1 }, Compression::Gzip { level: 9 }),
        (Compression::Lz4 { level: 1 }, Compression::Lz4 { level: 4 }),
        (Compression::Lz4 { level: 9 }, Compression::Lz4 { level: 12 }),
        (Compression::Zstd { level: 1 }, Compression::Zstd { level: 19 }),
    ] {
        assert!(size(high) < size(low), "{high:?} against {low:?}");
    }
}

proptest! {
    #[test]
    fn arbitrary_payloads_are_read_back(
        pieces in proptest::collection::vec((any::<u8>(), 1_usize..5_000), 0..40),
        noise in proptest::collection::vec(any::<u8>(), 0..2_000),
        which in any::<prop::sample::Index>(),
    ) {
        let mut payload: Vec<u8> =
            pieces.into_iter().flat_map(|(byte, count)| vec![byte; count]).collect();
        payload.extend_from_slice(&noise);
        payload.extend_from_within(..payload.len() / 2);
        let levels = levels();
        let compression = levels[which.index(levels.len())];
        let packed = compress(compression, &payload);
        prop_assert_eq!(decompress(compression.codec(), &packed, MIB), Ok(payload));
    }

    /// Hostile input H27: broken data is an error or other data, never a panic or more output
    /// than allowed.
    #[test]
    fn broken_payloads_are_bounded(
        at in any::<prop::sample::Index>(), byte in any::<u8>(), id in 1_u8..5,
    ) {
        let codec = Codec::from_id(id).unwrap();
        let mut packed = compress(Compression::of(codec), &text(5_000));
        let at = at.index(packed.len());
        packed[at] = byte;
        if let Ok(unpacked) = decompress(codec, &packed, 6_000) {
            prop_assert!(unpacked.len() <= 6_000);
        }
    }

    #[test]
    fn noise_is_bounded(packed in proptest::collection::vec(any::<u8>(), 0..300), id in 1_u8..5) {
        let codec = Codec::from_id(id).unwrap();
        if let Ok(unpacked) = decompress(codec, &packed, 6_000) {
            prop_assert!(unpacked.len() <= 6_000);
        }
    }
}

/// Hostile input H27: a stream that was cut is corrupt at every cut.
#[test]
fn cut_streams_are_corrupt() {
    let payload = text(2_000);
    for codec in [Codec::Gzip, Codec::Lz4, Codec::Zstd] {
        let packed = compress(Compression::of(codec), &payload);
        for cut in 0..packed.len() {
            let unpacked = decompress(codec, &packed[..cut], MIB);
            let corrupt = matches!(unpacked, Err(DecompressError::Corrupt { .. }));
            assert!(corrupt, "{} cut at {cut}: {unpacked:?}", codec.name());
        }
    }
}

/// Hostile input H27: Java clients frame their blocks, others send one bare block.
#[test]
fn snappy_is_read_framed_and_bare() {
    let payload = text(100_000);
    let framed = compress(Compression::Snappy, &payload);
    assert!(framed.starts_with(b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01"));
    assert_eq!(decompress(Codec::Snappy, &framed, MIB).unwrap(), payload);
    let bare = snap::raw::Encoder::new().compress_vec(&payload).unwrap();
    assert_eq!(decompress(Codec::Snappy, &bare, MIB).unwrap(), payload);
    for cut in [3, 17, 19, 30, framed.len() - 1] {
        assert!(decompress(Codec::Snappy, &framed[..cut], MIB).is_err(), "cut at {cut}");
    }
}

#[test]
fn lz4_is_read_with_linked_blocks_and_all_checksums() {
    use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
    let payload = text(700_000);
    for size in [BlockSize::Max64KB, BlockSize::Max256KB, BlockSize::Max4MB] {
        for mode in [BlockMode::Independent, BlockMode::Linked] {
            let info = FrameInfo::new()
                .block_size(size)
                .block_mode(mode)
                .block_checksums(true)
                .content_checksum(true);
            let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
            encoder.write_all(&payload).unwrap();
            let packed = encoder.finish().unwrap();
            assert_eq!(decompress(Codec::Lz4, &packed, MIB).unwrap(), payload);
            let mut flipped = packed.clone();
            *flipped.last_mut().unwrap() ^= 1;
            assert!(decompress(Codec::Lz4, &flipped, MIB).is_err());
        }
    }
}

#[test]
fn streams_of_several_frames_are_one_payload() {
    let (first, second) = (text(1_000), text(70_000));
    for codec in [Codec::Gzip, Codec::Lz4, Codec::Zstd] {
        let mut packed = compress(Compression::of(codec), &first);
        packed.extend(compress(Compression::of(codec), &[]));
        packed.extend(compress(Compression::of(codec), &second));
        let unpacked = decompress(codec, &packed, MIB).unwrap();
        assert_eq!(unpacked, [&first[..], &second[..]].concat(), "{}", codec.name());
    }
}

/// Hostile input H26: a frame without output costs the sender as much as it costs us, once.
#[test]
fn frames_without_content_are_limited_in_number() {
    for codec in [Codec::Gzip, Codec::Lz4, Codec::Zstd] {
        let empty = compress(Compression::of(codec), &[]);
        assert_eq!(decompress(codec, &empty.repeat(1_000), MIB), Ok(Vec::new()));
        let million = empty.repeat(1_000_000);
        assert!(matches!(decompress(codec, &million, MIB), Err(DecompressError::Corrupt { .. })));
    }
    let skippable = [0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0].repeat(1_000_000);
    assert!(decompress(Codec::Zstd, &skippable, MIB).is_err());
    let mut blocks = compress(Compression::Snappy, &[]);
    blocks.extend([0, 0, 0, 1, 0].repeat(1_000_000));
    assert!(decompress(Codec::Snappy, &blocks, MIB).is_err());
}

/// Hostile input H26: the limit holds to the byte, and a claim of size reserves nothing.
#[test]
fn bombs_stop_at_the_limit() {
    let bomb = vec![0; 32 * MIB];
    for codec in [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        let packed = compress(Compression::of(codec), &bomb);
        let limit = 10 * MIB;
        assert_eq!(
            decompress(codec, &packed, limit),
            Err(DecompressError::TooLarge { limit }),
            "{}",
            codec.name()
        );
        let fitting = compress(Compression::of(codec), &bomb[..limit]);
        assert_eq!(decompress(codec, &fitting, limit).map(|bytes| bytes.len()), Ok(limit));
    }
    let claims_4_gib = [0xff, 0xff, 0xff, 0xff, 0x0f, 0];
    assert!(decompress(Codec::Snappy, &claims_4_gib, 100 * MIB).is_err());
    let bare = snap::raw::Encoder::new().compress_vec(&bomb).unwrap();
    let kept_whole = DecompressError::TooLarge { limit: 15 * MIB };
    assert_eq!(decompress(Codec::Snappy, &bare, 100 * MIB), Err(kept_whole));
}

/// Hostile input H26: a zstd frame names the window that its reader has to remember.
#[test]
fn zstd_windows_are_bounded() {
    // Magic, no checksum, window of 2 GiB, one empty last block.
    let frame = |window: u8| [0x28, 0xb5, 0x2f, 0xfd, 0x00, window, 0x01, 0x00, 0x00];
    let limit = 100 * MIB;
    let two_gib = 21 << 3;
    assert!(decompress(Codec::Zstd, &frame(two_gib), limit).is_err());
    let largest_accepted = 17 << 3;
    assert_eq!(decompress(Codec::Zstd, &frame(largest_accepted), limit), Ok(Vec::new()));

    let mut wide = compress(Compression::Zstd { level: 3 }, &vec![0; 40 * MIB]);
    assert_eq!(decompress(Codec::Zstd, &wide, limit).map(|bytes| bytes.len()), Ok(40 * MIB));
    assert_eq!(wide[4] & 0x20, 0, "a streamed frame has a window descriptor");
    wide[5] = largest_accepted;
    let kept_whole = DecompressError::TooLarge { limit: 15 * MIB };
    assert_eq!(decompress(Codec::Zstd, &wide, limit), Err(kept_whole));
}

#[test]
fn the_bound_follows_the_largest_message() {
    for (message, bound) in [(0, MIB), (500, MIB), (MIB, 10 * MIB), (50 * MIB, 100 * MIB)] {
        assert_eq!(decompressed_bytes_max(message), bound);
    }
    assert_eq!(decompressed_bytes_max(usize::MAX), 100 * MIB);
}

#[test]
fn codecs_have_kafkas_numbers_and_names() {
    let names: Vec<_> = Codec::ALL.iter().map(|codec| codec.name()).collect();
    assert_eq!(names, ["none", "gzip", "snappy", "lz4", "zstd"]);
    for (id, codec) in Codec::ALL.into_iter().enumerate() {
        assert_eq!(usize::from(codec.id()), id);
        assert_eq!(Codec::from_id(codec.id()), Some(codec));
    }
    assert_eq!(Codec::from_id(5), None);
}
