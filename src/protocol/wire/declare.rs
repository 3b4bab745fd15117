//! The notation in which messages are declared, and what is derived from it.
//!
//! ```text
//! messages! {
//!     api Produce;                                    which row of the version table applies
//!
//!     request ProduceRequest {                        `request`, `response`, or `part` of either
//!         transactional_id: Option<Str> [3.., null 3..],
//!         acks: i16 [3..],
//!     }
//!     part PartitionProduceResponse {
//!         index: i32 [3..],
//!         log_append_time_ms: i64 [3..] = -1,         the value where the version has no field
//!         current_leader: LeaderIdAndEpoch [10.., tag 0],
//!     }
//! }
//! ```
//!
//! In brackets stand the versions that have the field, then, where they apply, its tag (the field
//! is then among the tagged ones of KIP-482 and left out when it has its default) and the versions
//! in which it can be null. Fields are encoded in the order in which they stand; tagged fields
//! must stand in the order of their tags.

use super::{Encoder, Nullable, Wire};

/// Declares the messages of one API. See the head of this file.
macro_rules! messages {
    (
        api $api:ident;
        $( $(#[$meta:meta])* $kind:ident $name:ident { $($body:tt)* } )*
    ) => { $(
        $crate::wire::declare::structure! { $(#[$meta])* $name { $($body)* } }
        $crate::wire::declare::message! { $kind $name $api }
    )* };
}

macro_rules! structure {
    (
        $(#[$meta:meta])* $name:ident {
            $( $(#[$doc:meta])* $field:ident : $type:ty [ $($spec:tt)* ] $(= $default:expr)? ),*
            $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name { $( $(#[$doc])* pub $field: $type, )* }

        impl Default for $name {
            fn default() -> Self {
                Self { $( $field: $crate::wire::declare::default_value!($($default)?), )* }
            }
        }

        impl $crate::wire::Wire for $name {
            fn bytes_min(version: i16, flexible: bool) -> usize {
                let tag_count = usize::from(flexible);
                tag_count $( + $crate::wire::declare::bytes_min!(
                    version, flexible, $type, [$($spec)*]
                ) )*
            }

            fn read(
                decoder: &mut $crate::Decoder,
                version: i16,
            ) -> Result<Self, $crate::DecodeError> {
                let mut value = Self::default();
                $( $crate::wire::declare::read_field!(
                    decoder, version, value.$field,
                    concat!(stringify!($name), ".", stringify!($field)), [$($spec)*]
                ); )*
                if decoder.is_flexible() {
                    decoder.tagged_fields(|_tag, _decoder| {
                        $( $crate::wire::declare::read_tagged!(
                            _tag, _decoder, version, value.$field,
                            concat!(stringify!($name), ".", stringify!($field)), [$($spec)*]
                        ); )*
                        Ok(false)
                    })?;
                }
                Ok(value)
            }

            fn write(&self, encoder: &mut $crate::Encoder, version: i16) {
                $( $crate::wire::declare::write_field!(
                    encoder, version, self.$field, [$($spec)*]
                ); )*
                if encoder.is_flexible() {
                    let tag_count = 0 $( + $crate::wire::declare::tagged_count!(
                        version, self.$field, ($($default)?), [$($spec)*]
                    ) )*;
                    encoder.unsigned_varint(tag_count);
                    $( $crate::wire::declare::write_tagged!(
                        encoder, version, self.$field, ($($default)?), [$($spec)*]
                    ); )*
                }
            }
        }

        impl $crate::wire::Nullable for $name {
            fn null_bytes_min(_: i16, _: bool) -> usize {
                1
            }

            fn read_nullable(
                decoder: &mut $crate::Decoder,
                version: i16,
            ) -> Result<Option<Self>, $crate::DecodeError> {
                let [presence] = decoder.take()?;
                if (presence as i8) < 0 {
                    return Ok(None);
                }
                $crate::wire::Wire::read(decoder, version).map(Some)
            }

            fn write_null(encoder: &mut $crate::Encoder) {
                encoder.put(&[u8::MAX]);
            }

            fn write_present(&self, encoder: &mut $crate::Encoder, version: i16) {
                encoder.put(&[1]);
                $crate::wire::Wire::write(self, encoder, version);
            }
        }
    };
}

macro_rules! message {
    (part $name:ident $api:ident) => {};
    (request $name:ident $api:ident) => {
        $crate::wire::declare::message! { message $name $api }
    };
    (response $name:ident $api:ident) => {
        $crate::wire::declare::message! { message $name $api }
    };
    (message $name:ident $api:ident) => {
        impl $crate::Message for $name {
            const KEY: $crate::ApiKey = $crate::ApiKey::$api;
            const VERSIONS: $crate::VersionRange = $crate::ApiKey::$api.spec().served;

            fn decode(
                decoder: &mut $crate::Decoder,
                version: i16,
            ) -> Result<Self, $crate::DecodeError> {
                if !Self::VERSIONS.contains(version) {
                    return Err($crate::Fault::UnknownVersion.into());
                }
                decoder.set_flexible(Self::KEY.spec().is_flexible(version));
                $crate::wire::Wire::read(decoder, version)
            }

            fn encode(&self, encoder: &mut $crate::Encoder, version: i16) {
                assert!(Self::VERSIONS.contains(version), "{:?} {version}", Self::KEY);
                encoder.set_flexible(Self::KEY.spec().is_flexible(version));
                $crate::wire::Wire::write(self, encoder, version);
            }
        }
    };
}

macro_rules! default_value {
    () => {
        Default::default()
    };
    ($default:expr) => {
        $default
    };
}

macro_rules! bytes_min {
    ($version:ident, $flexible:ident, $type:ty, [$in:expr]) => {
        if ($in).contains(&$version) {
            <$type as $crate::wire::Wire>::bytes_min($version, $flexible)
        } else {
            0
        }
    };
    ($version:ident, $flexible:ident, $type:ty, [$in:expr, null $null:expr]) => {
        $crate::wire::declare::bytes_min!($version, $flexible, $type, [$in])
    };
    ($version:ident, $flexible:ident, $type:ty, [$in:expr, tag $($rest:tt)*]) => {
        0
    };
}

macro_rules! read_field {
    ($decoder:ident, $version:ident, $value:ident.$field:ident, $name:expr, [$in:expr]) => {
        if ($in).contains(&$version) {
            $value.$field = $crate::wire::Wire::read($decoder, $version)
                .map_err(|error| error.within($name))?;
        }
    };
    (
        $decoder:ident, $version:ident, $value:ident.$field:ident, $name:expr,
        [$in:expr, null $null:expr]
    ) => {
        $crate::wire::declare::read_field!($decoder, $version, $value.$field, $name, [$in]);
        if ($in).contains(&$version) && $value.$field.is_none() && !($null).contains(&$version) {
            return Err($crate::DecodeError::from($crate::Fault::Null).within($name));
        }
    };
    (
        $decoder:ident, $version:ident, $value:ident.$field:ident, $name:expr,
        [$in:expr, tag $($rest:tt)*]
    ) => {};
}

macro_rules! read_tagged {
    (
        $tag:ident, $decoder:ident, $version:ident, $value:ident.$field:ident, $name:expr,
        [$in:expr, tag $number:literal]
    ) => {
        if $tag == $number && ($in).contains(&$version) {
            $value.$field = $crate::wire::Wire::read($decoder, $version)
                .map_err(|error| error.within($name))?;
            return Ok(true);
        }
    };
    (
        $tag:ident, $decoder:ident, $version:ident, $value:ident.$field:ident, $name:expr,
        [$in:expr, tag $number:literal, null $null:expr]
    ) => {
        $crate::wire::declare::read_tagged!(
            $tag, $decoder, $version, $value.$field, $name, [$in, tag $number]
        );
    };
    (
        $tag:ident, $decoder:ident, $version:ident, $value:ident.$field:ident, $name:expr,
        [$in:expr $(, null $null:expr)?]
    ) => {};
}

macro_rules! write_field {
    ($encoder:ident, $version:ident, $value:ident.$field:ident, [$in:expr]) => {
        if ($in).contains(&$version) {
            $crate::wire::Wire::write(&$value.$field, $encoder, $version);
        }
    };
    ($encoder:ident, $version:ident, $value:ident.$field:ident, [$in:expr, null $null:expr]) => {
        if ($in).contains(&$version) {
            let nullable = ($null).contains(&$version);
            $crate::wire::declare::write_nullable(&$value.$field, nullable, $encoder, $version);
        }
    };
    ($encoder:ident, $version:ident, $value:ident.$field:ident, [$in:expr, tag $($rest:tt)*]) => {};
}

/// Writes a field that is null in some versions; where it cannot be, it is empty instead.
pub(crate) fn write_nullable<T: Nullable>(
    value: &Option<T>,
    nullable: bool,
    encoder: &mut Encoder,
    version: i16,
) {
    if value.is_none() && !nullable {
        T::default().write(encoder, version);
    } else {
        value.write(encoder, version);
    }
}

/// Whether a tagged field has to be written.
pub(crate) fn differs<T: PartialEq>(value: &T, default: T) -> bool {
    *value != default
}

macro_rules! tagged_count {
    (
        $version:ident, $value:ident.$field:ident, ($($default:expr)?),
        [$in:expr, tag $($rest:tt)*]
    ) => {
        u32::from(($in).contains(&$version) && $crate::wire::declare::differs(
            &$value.$field, $crate::wire::declare::default_value!($($default)?),
        ))
    };
    (
        $version:ident, $value:ident.$field:ident, ($($default:expr)?),
        [$in:expr $(, null $null:expr)?]
    ) => {
        0
    };
}

macro_rules! write_tagged {
    (
        $encoder:ident, $version:ident, $value:ident.$field:ident, ($($default:expr)?),
        [$in:expr, tag $number:literal $($rest:tt)*]
    ) => {
        if ($in).contains(&$version) && $crate::wire::declare::differs(
            &$value.$field, $crate::wire::declare::default_value!($($default)?),
        ) {
            $encoder.tagged_field($number, |encoder| {
                $crate::wire::Wire::write(&$value.$field, encoder, $version);
            });
        }
    };
    (
        $encoder:ident, $version:ident, $value:ident.$field:ident, ($($default:expr)?),
        [$in:expr $(, null $null:expr)?]
    ) => {};
}

pub(crate) use {
    bytes_min, default_value, message, messages, read_field, read_tagged, structure, tagged_count,
    write_field, write_tagged,
};
