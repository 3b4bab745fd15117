//! Files: exact reads, whole writes, poison.

use std::io;
use std::path::Path;

use runtime::file::{ALIGNMENT, AlignedBuf, Block, File, Mode};
use runtime::task::{Either, race};

use crate::process::{apart, finish};
use crate::{TempDir, on_core};

const MODES: [Mode; 4] = [Mode::Direct, Mode::DirectSync, Mode::Buffered, Mode::BufferedSync];

/// Bytes in which every position is recognisable.
fn pattern(seed: usize, len: usize) -> AlignedBuf {
    let mut buffer = AlignedBuf::zeroed(len);
    for (index, byte) in buffer.iter_mut().enumerate() {
        *byte = ((index + seed) * 31 % 251) as u8;
    }
    buffer
}

fn flags_of(path: &Path) -> i32 {
    for entry in std::fs::read_dir("/proc/self/fd").unwrap() {
        let entry = entry.unwrap();
        if std::fs::read_link(entry.path()).is_ok_and(|target| target == path) {
            let name = entry.file_name().into_string().unwrap();
            let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{name}")).unwrap();
            let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap();
            return i32::from_str_radix(flags.trim(), 8).unwrap();
        }
    }
    panic!("{} is not open", path.display());
}

async fn round_trip(dir: &Path, mode: Mode) {
    let path = dir.join(format!("{mode:?}"));
    let file = File::create_new(&path, mode).await.unwrap();
    let block = pattern(1, 3 * ALIGNMENT).freeze();
    file.write_at(0, block.clone()).await.unwrap();
    file.write_at(3 * ALIGNMENT as u64, block.slice(ALIGNMENT..2 * ALIGNMENT)).await.unwrap();
    assert_eq!(file.size().await.unwrap(), 4 * ALIGNMENT as u64);
    let all = file.read_at(0, 4 * ALIGNMENT).await.unwrap();
    assert_eq!(all[..3 * ALIGNMENT], block[..]);
    assert_eq!(all[3 * ALIGNMENT..], block[ALIGNMENT..2 * ALIGNMENT]);
    for (offset, len) in [(0, 1), (1, 4095), (4095, 2), (4097, 8000), (5000, 1), (8191, 8193)] {
        let part = file.read_at(offset, len).await.unwrap();
        assert_eq!(part[..], all[offset as usize..offset as usize + len], "{offset}+{len}");
    }
    assert_eq!(all[..], std::fs::read(&path).unwrap()[..]);
    file.close().await.unwrap();
    let file = File::open(&path, mode).await.unwrap();
    assert_eq!(file.read_at(0, 4 * ALIGNMENT).await.unwrap()[..], all[..]);
    file.close().await.unwrap();
}

#[test]
fn what_is_written_is_read_in_every_mode() {
    let dir = TempDir::on_disk("round-trip");
    let path = dir.0.clone();
    on_core(move || {
        let path = path.clone();
        async move {
            for mode in MODES {
                round_trip(&path, mode).await;
            }
        }
    });
}

#[test]
fn a_file_system_in_memory_works_too() {
    let dir = TempDir::in_memory("round-trip");
    let path = dir.0.clone();
    on_core(move || {
        let path = path.clone();
        async move {
            for mode in MODES {
                round_trip(&path, mode).await;
            }
        }
    });
}

#[test]
fn modes_are_the_flags_they_name() {
    let dir = TempDir::on_disk("flags");
    let path = dir.0.clone();
    on_core(move || {
        let path = path.clone();
        async move {
            for mode in MODES {
                let path = path.join(format!("{mode:?}"));
                let file = File::create_new(&path, mode).await.unwrap();
                let flags = flags_of(&path);
                assert_eq!(flags & libc::O_DIRECT != 0, mode.is_direct(), "{mode:?}");
                assert_eq!(flags & libc::O_DSYNC != 0, mode.is_sync(), "{mode:?}");
                file.close().await.unwrap();
            }
        }
    });
}

#[test]
fn reads_end_where_the_file_ends() {
    let dir = TempDir::on_disk("end");
    let path = dir.join("600 bytes");
    let contents: Vec<u8> = (0..600).map(|index| (index % 250) as u8).collect();
    std::fs::write(&path, &contents).unwrap();
    on_core(move || {
        let path = path.clone();
        let contents = contents.clone();
        async move {
            for mode in MODES {
                let file = File::open(&path, mode).await.unwrap();
                let reads = [(0, 600), (0, 1000), (500, 200), (599, 1), (600, 1), (10_000, 5000)];
                for (offset, len) in reads {
                    let got = file.read_at(offset as u64, len).await.unwrap();
                    let start = offset.min(600);
                    let expected = &contents[start..(offset + len).clamp(start, 600)];
                    assert_eq!(got[..], *expected, "{mode:?}: {offset}+{len}");
                }
                assert!(file.read_at(3, 0).await.unwrap().is_empty());
                file.close().await.unwrap();
            }
        }
    });
}

#[test]
fn a_prefix_is_frozen_without_its_tail() {
    let dir = TempDir::on_disk("prefix");
    let path = dir.join("file");
    on_core(move || {
        let path = path.clone();
        async move {
            let file = File::create_new(&path, Mode::DirectSync).await.unwrap();
            let buffer = pattern(5, 64 * ALIGNMENT);
            let expected = buffer[..2 * ALIGNMENT].to_vec();
            let block = buffer.freeze_prefix(2 * ALIGNMENT);
            file.write_at(0, block.clone()).await.unwrap();
            assert_eq!(file.size().await.unwrap(), 2 * ALIGNMENT as u64);
            assert_eq!(file.read_at(0, 1 << 20).await.unwrap()[..], expected[..]);
            // A block that was read can be written elsewhere.
            let read = file.read_at(0, 2 * ALIGNMENT).await.unwrap();
            file.write_at(2 * ALIGNMENT as u64, read).await.unwrap();
            let copy = file.read_at(2 * ALIGNMENT as u64, 2 * ALIGNMENT).await.unwrap();
            assert_eq!(copy[..], expected[..]);
            file.close().await.unwrap();
        }
    });
}

#[test]
fn space_is_allocated_ahead_and_reads_as_zeros() {
    let dir = TempDir::on_disk("allocate");
    let path = dir.join("file");
    let seen = path.clone();
    on_core(move || {
        let path = path.clone();
        async move {
            let file = File::create_new(&path, Mode::DirectSync).await.unwrap();
            file.preallocate(64 << 10).await.unwrap();
            file.write_at(0, pattern(9, ALIGNMENT).freeze()).await.unwrap();
            file.preallocate(1 << 20).await.unwrap();
            assert_eq!(file.size().await.unwrap(), 1 << 20);
            let tail = file.read_at(ALIGNMENT as u64, 1 << 20).await.unwrap();
            assert_eq!(tail.len(), (1 << 20) - ALIGNMENT);
            assert!(tail.iter().all(|byte| *byte == 0));
            file.close().await.unwrap();
        }
    });
    let metadata = std::fs::metadata(&seen).unwrap();
    assert!(std::os::unix::fs::MetadataExt::blocks(&metadata) * 512 >= 1 << 20);
}

#[test]
fn a_file_is_cut_to_its_exact_length() {
    let dir = TempDir::on_disk("truncate");
    let path = dir.join("file");
    on_core(move || {
        let path = path.clone();
        async move {
            let file = File::create_new(&path, Mode::DirectSync).await.unwrap();
            let block = pattern(3, 2 * ALIGNMENT).freeze();
            file.write_at(0, block.clone()).await.unwrap();
            file.truncate(5001).await.unwrap();
            assert_eq!(file.size().await.unwrap(), 5001);
            assert_eq!(file.read_at(0, 2 * ALIGNMENT).await.unwrap()[..], block[..5001]);
            file.close().await.unwrap();
        }
    });
}

#[test]
fn a_file_that_is_renamed_while_it_is_opened_is_opened_or_not_found() {
    let dir = TempDir::on_disk("renamed");
    let (one, other) = (dir.join("one"), dir.join("other"));
    std::fs::write(&one, "content").unwrap();
    on_core(move || {
        let (one, other) = (one.clone(), other.clone());
        async move {
            let (mut opened, mut missing) = (0, 0);
            for _ in 0..300 {
                for (from, to) in [(&one, &other), (&other, &one)] {
                    let open = File::open(from, Mode::Direct);
                    let rename = runtime::fs::rename(from, to);
                    let (file, renamed) = futures_lite::future::zip(open, rename).await;
                    renamed.unwrap();
                    match file {
                        Ok(file) => {
                            assert_eq!(file.size().await.unwrap(), 7);
                            file.close().await.unwrap();
                            opened += 1;
                        }
                        Err(error) => {
                            assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
                            missing += 1;
                        }
                    }
                }
            }
            assert_eq!(opened + missing, 600);
        }
    });
}

#[test]
fn running_out_of_space_while_allocating_does_no_harm() {
    let dir = TempDir::in_memory("full");
    let path = dir.join("file");
    on_core(move || {
        let path = path.clone();
        async move {
            let file = File::create_new(&path, Mode::Direct).await.unwrap();
            let error = file.preallocate(1 << 50).await.unwrap_err();
            assert!(error.is_full(), "{error}");
            assert!(error.to_string().contains("allocate") && error.to_string().contains("file"));
            file.write_at(0, pattern(0, ALIGNMENT).freeze()).await.unwrap();
            file.close().await.unwrap();
        }
    });
}

#[test]
fn names_that_are_taken_or_missing_are_errors_with_the_path() {
    let dir = TempDir::on_disk("open-errors");
    let path = dir.join("file");
    on_core(move || {
        let path = path.clone();
        async move {
            for mode in MODES {
                let missing = File::open(&path, mode).await.err().unwrap();
                assert_eq!(missing.kind(), io::ErrorKind::NotFound);
                assert_eq!(missing.path, path);
            }
            File::create_new(&path, Mode::Direct).await.unwrap().close().await.unwrap();
            for mode in MODES {
                let taken = File::create_new(&path, mode).await.err().unwrap();
                assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
            }
        }
    });
}

#[test]
fn a_write_that_is_abandoned_poisons_the_file() {
    let dir = TempDir::on_disk("abandoned");
    let path = dir.join("file");
    on_core(move || {
        let path = path.clone();
        async move {
            for mode in MODES {
                let path = path.with_extension(format!("{mode:?}"));
                let file = File::create_new(&path, mode).await.unwrap();
                let block = pattern(0, ALIGNMENT).freeze();
                let write = file.write_at(0, block.clone());
                assert!(matches!(race(write, async {}).await, Either::Right(())));
                let error = file.write_at(0, block).await.unwrap_err();
                assert!(error.to_string().contains("abandoned"), "{error}");
                assert!(file.sync().await.is_err());
                file.close().await.unwrap();
                // Opened again it is as good as new.
                let file = File::open(&path, mode).await.unwrap();
                file.write_at(0, pattern(0, ALIGNMENT).freeze()).await.unwrap();
                file.close().await.unwrap();
            }
        }
    });
}

#[test]
fn a_write_that_fails_poisons_the_file() {
    let output = finish(apart(
        "files::a_write_that_fails_poisons_the_file",
        child_writes_beyond_the_file_size_limit,
    ));
    assert_eq!(output.code, Some(0), "{}", output.stderr);
}

#[test]
fn a_short_write_is_continued_until_it_fails() {
    let output = finish(apart(
        "files::a_short_write_is_continued_until_it_fails",
        child_writes_across_the_file_size_limit,
    ));
    assert_eq!(output.code, Some(0), "{}", output.stderr);
}

#[test]
fn descriptors_are_closed_with_and_without_close() {
    let dir = TempDir::on_disk("descriptors");
    let path = dir.0.clone();
    on_core(move || {
        let path = path.clone();
        async move {
            for round in 0..100 {
                for mode in MODES {
                    let file = File::create_new(path.join(format!("{round}-{mode:?}")), mode)
                        .await
                        .unwrap();
                    file.write_at(0, pattern(round, ALIGNMENT).freeze()).await.unwrap();
                    if round % 2 == 0 {
                        file.close().await.unwrap();
                    }
                }
            }
            while open_under(&path) > 0 {
                runtime::task::yield_now().await;
            }
        }
    });
}

fn open_under(dir: &Path) -> usize {
    let entries = std::fs::read_dir("/proc/self/fd").unwrap();
    entries
        .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
        .filter(|target| target.starts_with(dir))
        .count()
}

#[test]
fn blocks_become_bytes_without_a_copy() {
    on_core(|| async {
        let block = pattern(7, ALIGNMENT).freeze();
        let bytes = block.slice(10..20).to_bytes();
        assert_eq!(bytes.as_ptr(), block[10..].as_ptr());
        assert_eq!(bytes[..], block[10..20]);
        drop(block);
        assert_eq!(bytes[..], pattern(7, ALIGNMENT)[10..20]);
        assert!(Block::empty().to_bytes().is_empty());
    });
}

#[test]
fn bytes_of_a_block_must_not_die_on_another_thread() {
    let output = finish(apart(
        "files::bytes_of_a_block_must_not_die_on_another_thread",
        child_drops_bytes_elsewhere,
    ));
    assert_eq!(output.code, Some(70));
    assert!(output.stderr.contains("dropped on another core"), "{}", output.stderr);
}

#[test]
fn many_files_are_written_at_once() {
    let dir = TempDir::on_disk("many");
    let path = dir.0.clone();
    on_core(move || {
        let path = path.clone();
        async move {
            let done = runtime::local::Queue::bounded(64);
            for index in 0..64 {
                let (path, done) = (path.join(index.to_string()), done.clone());
                runtime::task::spawn(async move {
                    let file = File::create_new(&path, Mode::DirectSync).await.unwrap();
                    file.preallocate(16 * ALIGNMENT as u64).await.unwrap();
                    for block in 0..4 {
                        let bytes = pattern(index + block, ALIGNMENT).freeze();
                        file.write_at((block * ALIGNMENT) as u64, bytes).await.unwrap();
                    }
                    file.close().await.unwrap();
                    done.push(index).await.unwrap();
                });
            }
            for _ in 0..64 {
                let index = done.pop().await.unwrap();
                let written = std::fs::read(path.join(index.to_string())).unwrap();
                for block in 0..4 {
                    let expected = pattern(index + block, ALIGNMENT);
                    assert_eq!(written[block * ALIGNMENT..][..ALIGNMENT], expected[..]);
                }
            }
        }
    });
}

fn child_writes_beyond_the_file_size_limit() {
    use nix::sys::resource::{Resource, setrlimit};
    use nix::sys::signal::{SigHandler, Signal, signal};
    let dir = TempDir::on_disk("limit");
    let path = dir.join("file");
    // SAFETY: ignoring a signal runs no code.
    unsafe { signal(Signal::SIGXFSZ, SigHandler::SigIgn) }.unwrap();
    let limit = 2 * ALIGNMENT as u64;
    setrlimit(Resource::RLIMIT_FSIZE, limit, limit).unwrap();
    on_core(move || {
        let path = path.clone();
        async move {
            for mode in MODES {
                let path = path.with_extension(format!("{mode:?}"));
                let file = File::create_new(&path, mode).await.unwrap();
                let block = pattern(0, ALIGNMENT).freeze();
                file.write_at(0, block.clone()).await.unwrap();
                let error = file.write_at(2 * ALIGNMENT as u64, block.clone()).await.unwrap_err();
                assert!(error.is_full(), "{mode:?}: {error}");
                let error = file.write_at(0, block.clone()).await.unwrap_err();
                assert!(error.to_string().contains("earlier write"), "{mode:?}: {error}");
                assert_eq!(file.read_at(0, ALIGNMENT).await.unwrap()[..], block[..]);
                file.close().await.unwrap();
            }
        }
    });
}

fn child_writes_across_the_file_size_limit() {
    use nix::sys::resource::{Resource, setrlimit};
    use nix::sys::signal::{SigHandler, Signal, signal};
    let dir = TempDir::on_disk("across");
    let path = dir.join("file");
    // SAFETY: ignoring a signal runs no code.
    unsafe { signal(Signal::SIGXFSZ, SigHandler::SigIgn) }.unwrap();
    let limit = 2 * ALIGNMENT as u64;
    setrlimit(Resource::RLIMIT_FSIZE, limit, limit).unwrap();
    on_core(move || {
        let path = path.clone();
        async move {
            for mode in MODES {
                let path = path.with_extension(format!("{mode:?}"));
                let file = File::create_new(&path, mode).await.unwrap();
                let block = pattern(0, 4 * ALIGNMENT).freeze();
                let error = file.write_at(0, block.clone()).await.unwrap_err();
                assert!(error.is_full(), "{mode:?}: {error}");
                let there = file.read_at(0, 4 * ALIGNMENT).await.unwrap();
                assert_eq!(there[..], block[..there.len()], "{mode:?}");
                assert!(there.len() <= 2 * ALIGNMENT);
                file.close().await.unwrap();
            }
        }
    });
}

fn child_drops_bytes_elsewhere() {
    on_core(|| async {
        let bytes = pattern(7, ALIGNMENT).freeze().to_bytes();
        runtime::task::blocking(move || drop(bytes)).await;
    });
}

#[test]
fn only_what_was_put_into_a_buffer_can_be_seen() {
    on_core(|| async {
        // The pool hands this memory out again.
        drop(pattern(7, 8192));
        let mut buffer = AlignedBuf::with_room(5000);
        assert_eq!((buffer.room(), buffer.len()), (8192, 0));
        buffer.put(b"abc");
        buffer.put(b"de");
        assert_eq!(&buffer[..], b"abcde");
        buffer.zero_to(4096);
        buffer[4095] = b'z';
        let block = buffer.freeze_prefix(4096);
        assert_eq!(&block[..5], b"abcde");
        assert!(block[5..4095].iter().all(|byte| *byte == 0));
        assert_eq!((block.len(), block[4095]), (4096, b'z'));
    });
}
