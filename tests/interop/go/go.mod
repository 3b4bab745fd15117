module coretide/interop

go 1.25

require github.com/twmb/franz-go v1.22.3
