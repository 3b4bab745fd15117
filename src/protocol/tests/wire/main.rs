//! Every message in every version against two oracles that know nothing of our code: the schemas
//! inside Kafka's own client jar, and the crate `kafka-protocol`.
//!
//! `CORETIDE_KAFKA_CLIENTS_JAR` names the jar; without it Maven fetches it once into `target/`.
//! A failure prints the seed of the value, and `CORETIDE_SEED=<seed>` repeats just that one.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod against_kafka_protocol;
mod against_schemas;
mod allocation;
mod cases;
mod entropy;
mod errors;
mod hostile;
mod jar;
mod offset_records;
mod schema;
mod slices;
mod value;

use cases::Case;
use entropy::Entropy;
use proptest::test_runner::{Config, TestRunner};
use schema::Schemas;

/// Calls `check` with every message in every version, each time with fresh random values.
fn for_every_message(rounds: u32, check: impl Fn(&Case, i16, &Schemas, &mut Entropy)) {
    let schemas = Schemas::of_jar();
    let cases = cases::all();
    let one_round = |seed: u64| {
        for case in &cases {
            for version in case.versions.iter() {
                let stream = (case.key.number() as u64) << 8 | version as u64;
                check(case, version, schemas, &mut Entropy::new(seed, stream));
            }
        }
    };
    if let Ok(seed) = std::env::var("CORETIDE_SEED") {
        return one_round(seed.parse().expect("CORETIDE_SEED is a number"));
    }
    let config = Config {
        cases: rounds,
        failure_persistence: None,
        max_shrink_iters: 0,
        ..Config::default()
    };
    let result = TestRunner::new(config).run(&proptest::num::u64::ANY, |seed| {
        one_round(seed);
        Ok(())
    });
    // A smaller seed is not a smaller value: nothing is shrunk.
    result.unwrap_or_else(|failure| panic!("{failure} (that number is CORETIDE_SEED)"));
}
