//! Logins with OAuth bearer tokens.

use super::super::key::{ConfigKey, Kind, Rule};
use super::super::reason;

pub(super) static OAUTH_KEYS: &[ConfigKey] = &[
    ConfigKey::new("sasl.oauthbearer.allow.unverified.audience", Kind::Boolean, "false")
        .inert(reason::AUTHENTICATION)
        .doc("Whether a token for any audience is taken."),
    ConfigKey::new("sasl.oauthbearer.allow.unverified.issuer", Kind::Boolean, "false")
        .inert(reason::AUTHENTICATION)
        .doc("Whether a token of any issuer is taken."),
    ConfigKey::new("sasl.oauthbearer.assertion.algorithm", Kind::Text, "RS256")
        .rule(Rule::OneOfIgnoringCase(&["ES256", "RS256"]))
        .inert(reason::AUTHENTICATION)
        .doc("How assertions are signed."),
    ConfigKey::unset("sasl.oauthbearer.assertion.claim.aud", Kind::Text)
        .inert(reason::AUTHENTICATION)
        .doc("The audience of an assertion."),
    ConfigKey::new("sasl.oauthbearer.assertion.claim.exp.seconds", Kind::Int, "300")
        .rule(Rule::Between(0, 86400))
        .low()
        .inert(reason::AUTHENTICATION)
        .doc("How long an assertion is valid."),
    ConfigKey::unset("sasl.oauthbearer.assertion.claim.iss", Kind::Text)
        .inert(reason::AUTHENTICATION)
        .doc("The issuer of an assertion."),
    ConfigKey::new("sasl.oauthbearer.assertion.claim.jti.include", Kind::Boolean, "false")
        .inert(reason::AUTHENTICATION)
        .doc("Whether an assertion has an id."),
    ConfigKey::new("sasl.oauthbearer.assertion.claim.nbf.seconds", Kind::Int, "60")
        .rule(Rule::Between(0, 3600))
        .low()
        .inert(reason::AUTHENTICATION)
        .doc("How long before now an assertion is already valid."),
    ConfigKey::unset("sasl.oauthbearer.assertion.claim.sub", Kind::Text)
        .inert(reason::AUTHENTICATION)
        .doc("The subject of an assertion."),
    ConfigKey::unset("sasl.oauthbearer.assertion.file", Kind::Text)
        .inert(reason::AUTHENTICATION)
        .doc("A file with a ready assertion."),
    ConfigKey::unset("sasl.oauthbearer.assertion.private.key.file", Kind::Text)
        .inert(reason::AUTHENTICATION)
        .doc("The key that assertions are signed with."),
    ConfigKey::unset("sasl.oauthbearer.assertion.private.key.passphrase", Kind::Password)
        .inert(reason::AUTHENTICATION)
        .doc("The passphrase of that key."),
    ConfigKey::unset("sasl.oauthbearer.assertion.template.file", Kind::Text)
        .inert(reason::AUTHENTICATION)
        .doc("A file with the fixed parts of an assertion."),
    ConfigKey::unset("sasl.oauthbearer.client.credentials.client.id", Kind::Text)
        .inert(reason::AUTHENTICATION)
        .doc("The client id for the token endpoint."),
    ConfigKey::unset("sasl.oauthbearer.client.credentials.client.secret", Kind::Password)
        .inert(reason::AUTHENTICATION)
        .doc("The client secret for the token endpoint."),
    ConfigKey::new("sasl.oauthbearer.clock.skew.seconds", Kind::Int, "30")
        .low()
        .inert(reason::AUTHENTICATION)
        .doc("How far the clocks of issuer and broker may differ."),
    ConfigKey::new("sasl.oauthbearer.expected.audience", Kind::List, "")
        .high()
        .inert(reason::AUTHENTICATION)
        .doc("The audiences of which a token has to name one."),
    ConfigKey::unset("sasl.oauthbearer.expected.issuer", Kind::Text)
        .high()
        .inert(reason::AUTHENTICATION)
        .doc("The issuer that a token has to name."),
    ConfigKey::new("sasl.oauthbearer.jwks.endpoint.refresh.ms", Kind::Long, "3600000")
        .low()
        .inert(reason::AUTHENTICATION)
        .doc("How often the issuer's keys are fetched again."),
    ConfigKey::new("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", Kind::Long, "10000")
        .low()
        .inert(reason::AUTHENTICATION)
        .doc("The longest rest between two tries to fetch keys."),
    ConfigKey::new("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", Kind::Long, "100")
        .low()
        .inert(reason::AUTHENTICATION)
        .doc("The first rest between two tries to fetch keys."),
    ConfigKey::unset("sasl.oauthbearer.jwks.endpoint.url", Kind::Text)
        .inert(reason::AUTHENTICATION)
        .doc("Where the issuer's keys are."),
    ConfigKey::new(
        "sasl.oauthbearer.jwt.retriever.class",
        Kind::Class,
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
    )
    .refused(reason::PLUGINS)
    .doc("A class that gets tokens."),
    ConfigKey::new(
        "sasl.oauthbearer.jwt.validator.class",
        Kind::Class,
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",
    )
    .refused(reason::PLUGINS)
    .doc("A class that checks tokens."),
    ConfigKey::unset("sasl.oauthbearer.scope", Kind::Text)
        .inert(reason::AUTHENTICATION)
        .doc("The scope that is asked for."),
    ConfigKey::new("sasl.oauthbearer.scope.claim.name", Kind::Text, "scope")
        .low()
        .inert(reason::AUTHENTICATION)
        .doc("The claim that holds the scope."),
    ConfigKey::new("sasl.oauthbearer.sub.claim.name", Kind::Text, "sub")
        .low()
        .inert(reason::AUTHENTICATION)
        .doc("The claim that holds the user."),
    ConfigKey::unset("sasl.oauthbearer.token.endpoint.url", Kind::Text)
        .inert(reason::AUTHENTICATION)
        .doc("Where tokens are issued."),
];
