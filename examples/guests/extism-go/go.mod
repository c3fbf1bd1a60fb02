module github.com/weirgate/weir/examples/guests/extism-go

go 1.24

require github.com/extism/go-pdk v1.1.3
