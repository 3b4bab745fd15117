//! What flags, variables and the file come to.

use std::time::Duration;

use broker::config::{ByteSize, CoreList, FileConfig, Given, GivenTuning};

#[test]
fn sizes_are_binary_multiples_and_print_as_they_are_read() {
    for (text, bytes) in
        [("0", 0), ("4096", 4096), ("64KiB", 65536), ("1g", 1 << 30), ("2 MB", 2 << 20)]
    {
        assert_eq!(text.parse::<ByteSize>().unwrap().bytes(), bytes, "{text}");
    }
    for text in ["", "MiB", "1.5GiB", "-1", "12 parsecs", "99999999999TiB"] {
        let why = text.parse::<ByteSize>().unwrap_err().to_string();
        assert!(why.contains("512MiB"), "{text}: {why}");
    }
    assert_eq!(ByteSize::new(512 << 20).to_string(), "512MiB");
    assert_eq!(ByteSize::new(1536 << 20).to_string(), "1.5GiB");
    assert_eq!(ByteSize::new(100).to_string(), "100B");
}

#[test]
fn core_lists_name_cpus_once_and_only_those_that_are_there() {
    let list: CoreList = "0,2,4-6".parse().unwrap();
    assert_eq!(list.cpus(&[0, 1, 2, 3, 4, 5, 6]).unwrap(), [0, 2, 4, 5, 6]);
    assert_eq!("all".parse::<CoreList>().unwrap().cpus(&[3, 7]).unwrap(), [3, 7]);
    assert!(list.cpus(&[0, 1]).unwrap_err().to_string().contains("CPU 2 is not available"));
    let twice: CoreList = "1,1".parse().unwrap();
    assert!(twice.cpus(&[0, 1]).unwrap_err().to_string().contains("listed twice"));
    for text in ["", "a", "1-", "3-1", "0-100000"] {
        assert!(text.parse::<CoreList>().is_err(), "{text}");
    }
}

#[test]
fn flags_win_over_the_file_and_set_entries_merge() {
    let file = FileConfig::parse(
        "data-dir = \"/var/lib/coretide\"\nlisten = \"127.0.0.1:19000\"\nhost-id = 7\n\
         [set]\n\"num.partitions\" = 8\n\"log.retention.ms\" = 1000\n",
    )
    .unwrap();
    let mut flags = Given { listen: Some("127.0.0.1:20000".to_owned()), ..Given::default() };
    flags.set.insert("num.partitions".to_owned(), "3".to_owned());

    let config = flags.or(file).resolve().unwrap();

    assert_eq!(config.listen.port(), 20000);
    assert_eq!(config.host_id.0, 7);
    assert_eq!(config.data_dir.to_str(), Some("/var/lib/coretide"));
    assert_eq!(config.broker["num.partitions"], "3");
    assert_eq!(config.broker["log.retention.ms"], "1000");
}

#[test]
fn an_unknown_key_of_the_file_is_refused_with_the_nearest_name() {
    let why = FileConfig::parse("data_dir = \"x\"").unwrap_err().to_string();
    assert!(why.contains("unknown key 'data_dir'") && why.contains("'data-dir'"), "{why}");
    let why = FileConfig::parse("\"log.retention.ms\" = 5").unwrap_err().to_string();
    assert!(why.contains("[set]"), "{why}");
    assert!(FileConfig::parse("listen = [1]").is_err());
    assert!(FileConfig::parse("listen = ").is_err());
}

#[test]
fn advertised_names_may_carry_a_port_and_ipv6() {
    let resolve = |text: &str| {
        let given = Given { advertise: Some(text.to_owned()), ..Given::default() };
        given.resolve().map(|config| config.advertise.unwrap())
    };
    let plain = resolve("broker-1.example").unwrap();
    assert_eq!((plain.host.as_str(), plain.port), ("broker-1.example", None));
    let with_port = resolve("broker-1.example:9000").unwrap();
    assert_eq!((with_port.host.as_str(), with_port.port), ("broker-1.example", Some(9000)));
    let six = resolve("[::1]:9000").unwrap();
    assert_eq!((six.host.as_str(), six.port), ("::1", Some(9000)));
    assert_eq!(resolve("fe80::1").unwrap().host, "fe80::1");
    for text in ["", ":9000", "host:port", "[::1"] {
        assert!(resolve(text).is_err(), "{text}");
    }
}

#[test]
fn impossible_values_are_refused_by_name() {
    let wrong = |given: Given| given.resolve().unwrap_err().to_string();
    let why = wrong(Given { listen: Some("9092".to_owned()), ..Given::default() });
    assert!(why.contains("listen '9092'") && why.contains("HOST:PORT"), "{why}");
    let why = wrong(Given { host_id: Some(-1), ..Given::default() });
    assert!(why.contains("host-id -1"), "{why}");
    let small = Some(ByteSize::new(1 << 20));
    let tuning = GivenTuning { memory_per_core: small, ..GivenTuning::default() };
    let why = wrong(Given { tuning, ..Given::default() });
    assert!(why.contains("memory-per-core") && why.contains("32MiB"), "{why}");
}

#[test]
fn a_core_is_tuned_by_flags_by_the_file_and_by_a_table_of_its_own() {
    let file = FileConfig::parse(
        "memory-per-core = \"64MiB\"\nspin-before-park = \"20us\"\nread-ahead = 0\n\
         [core.3]\nspin-before-park = \"50us\"\nring-depth = 512\nsocket-send-buffer = \"1MiB\"\n",
    )
    .unwrap();
    let tuning = GivenTuning {
        memory_per_core: Some(ByteSize::new(128 << 20)),
        commit_linger: Some("200us".to_owned()),
        ..GivenTuning::default()
    };
    let config = Given { tuning, ..Given::default() }.or(file).resolve().unwrap();

    assert_eq!(config.tuning.memory, 128 << 20);
    assert_eq!(config.tuning.spin, Duration::from_micros(20));
    assert_eq!(config.tuning.read_ahead_bytes, 0);
    let third = &config.core_tuning[&3];
    assert_eq!((third.spin, third.ring_depth), (Duration::from_micros(50), 512));
    assert_eq!((third.memory, third.commit_linger), (128 << 20, Duration::from_micros(200)));
    assert_eq!((third.send_buffer_bytes, third.receive_buffer_bytes), (Some(1 << 20), None));
}

#[test]
fn impossible_tunings_are_refused_by_name_and_core() {
    for (line, named) in [
        ("spin-before-park = 50", "spin-before-park"),
        ("commit-linger = \"2s\"", "commit-linger"),
        ("ring-depth = 100", "ring-depth"),
        ("commit-bytes-max = \"2MiB\"", "commit-bytes-max"),
        ("read-ahead = \"1GiB\"", "read-ahead"),
        ("max-connections-per-core = 0", "max-connections-per-core"),
        ("socket-receive-buffer = 1", "socket-receive-buffer"),
        ("io-memory-per-core = \"1KiB\"", "io-memory-per-core"),
    ] {
        let why = FileConfig::parse(line).unwrap().resolve().unwrap_err().to_string();
        assert!(why.contains(named), "{line}: {why}");
        let why = FileConfig::parse(&format!("[core.2]\n{line}")).unwrap().resolve();
        let why = why.unwrap_err().to_string();
        assert!(why.contains(named) && why.contains("[core.2]"), "{line}: {why}");
    }
    let why = FileConfig::parse("[core.0]\nlisten = 1").unwrap_err().to_string();
    assert!(why.contains("'listen'") && why.contains("ring-depth"), "{why}");
    assert!(FileConfig::parse("[core.first]\n").is_err());
}
