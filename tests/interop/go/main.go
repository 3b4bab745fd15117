// franz-go against a broker: every codec there and back, and the life of a topic.
//
// Arguments: BOOTSTRAP RECORDS. Prints `ok CASE` or `FAILED CASE: why`, and fails if one failed.
// Or: member franz-go|sarama, and what a member of a group is told (member.go).
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	partitions = 6
	patience   = 60 * time.Second
)

var (
	bootstrap string
	records   int
	admin     *kadm.Client
	codecs    = map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
)

func main() {
	if os.Args[1] == "member" {
		map[string]func(*member){"franz-go": (*member).liveFranz, "sarama": (*member).liveSarama}[os.Args[2]](newMember(os.Args[3:]))
		return
	}
	bootstrap = os.Args[1]
	records, _ = strconv.Atoi(os.Args[2])
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap))
	if err != nil {
		panic(err)
	}
	admin = kadm.NewClient(client)
	failed := false
	run := func(name string, body func(context.Context) error) {
		ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
		defer cancel()
		if err := body(ctx); err != nil {
			failed = true
			fmt.Printf("FAILED %s: %s\n", name, strings.ReplaceAll(err.Error(), "\n", " "))
		} else {
			fmt.Printf("ok %s\n", name)
		}
	}
	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		run(codec+": there and back", func(ctx context.Context) error { return thereAndBack(ctx, codec) })
	}
	run("the life of a topic", lifeOfATopic)
	run("records are deleted", recordsAreDeleted)
	if failed {
		os.Exit(1)
	}
}

func unique(name string) string {
	return fmt.Sprintf("franz-%s-%d", name, time.Now().UnixNano())
}

func expected(topic string, index int, codec string) *kgo.Record {
	record := &kgo.Record{Topic: topic, Partition: int32(index % partitions), Headers: []kgo.RecordHeader{
		{Key: "index", Value: []byte(strconv.Itoa(index))}, {Key: "codec", Value: []byte(codec)}, {Key: "empty", Value: []byte{}},
	}}
	if index%97 != 0 {
		record.Key = []byte(fmt.Sprintf("key-%d", index))
	}
	if index%97 != 1 {
		record.Value = []byte(fmt.Sprintf("value-%d-%s", index, strings.Repeat("x", 37*index%300)))
	}
	return record
}

func same(got, wanted *kgo.Record) error {
	equal := bytes.Equal(got.Key, wanted.Key) && bytes.Equal(got.Value, wanted.Value) &&
		(got.Key == nil) == (wanted.Key == nil) && (got.Value == nil) == (wanted.Value == nil) &&
		len(got.Headers) == len(wanted.Headers)
	for i := 0; equal && i < len(got.Headers); i++ {
		equal = got.Headers[i].Key == wanted.Headers[i].Key && bytes.Equal(got.Headers[i].Value, wanted.Headers[i].Value)
	}
	if !equal {
		return fmt.Errorf("at %d:%d wanted %v, got %v", got.Partition, got.Offset, wanted, got)
	}
	return nil
}

func create(ctx context.Context, topic string, count int32, configs map[string]*string) error {
	answer, err := admin.CreateTopic(ctx, count, 1, configs, topic)
	if err = errors.Join(err, answer.Err); err != nil {
		return err
	}
	return until("the topic has leaders", func() (bool, error) {
		leaders, err := leadersOf(ctx, topic)
		return len(leaders) == int(count), err
	})
}

func leadersOf(ctx context.Context, topic string) ([]int32, error) {
	metadata, err := admin.Metadata(ctx, topic)
	if err != nil {
		return nil, err
	}
	var leaders []int32
	for _, each := range metadata.Topics[topic].Partitions {
		if each.Leader >= 0 && each.Err == nil {
			leaders = append(leaders, each.Leader)
		}
	}
	return leaders, nil
}

func until(what string, condition func() (bool, error)) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		if holds, err := condition(); err != nil || holds {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not within %v: %s", patience, what)
		}
	}
}

func thereAndBack(ctx context.Context, codec string) error {
	topic := unique(codec)
	if err := create(ctx, topic, partitions, nil); err != nil {
		return err
	}
	if err := errors.Join(produce(ctx, topic, codec), readBack(ctx, topic, codec)); err != nil {
		return err
	}
	_, err := admin.DeleteTopic(ctx, topic)
	return err
}

func produce(ctx context.Context, topic, codec string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.ProducerBatchCompression(codecs[codec]),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return err
	}
	defer client.Close()
	var failure atomic.Pointer[error]
	for index := 0; index < records; index++ {
		client.Produce(ctx, expected(topic, index, codec), func(record *kgo.Record, err error) {
			if err == nil && record.Offset != int64(index/partitions) {
				err = fmt.Errorf("record %d was acknowledged at offset %d", index, record.Offset)
			}
			if err != nil {
				failure.Store(&err)
			}
		})
	}
	if err := client.Flush(ctx); err != nil {
		return err
	}
	if failed := failure.Load(); failed != nil {
		return *failed
	}
	return nil
}

func readBack(ctx context.Context, topic, codec string) error {
	starts := map[int32]kgo.Offset{}
	for partition := int32(0); partition < partitions; partition++ {
		starts[partition] = kgo.NewOffset().AtStart()
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: starts}))
	if err != nil {
		return err
	}
	defer client.Close()
	var nexts [partitions]int64
	for total := 0; total < records; {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("after %d records: %w", total, err)
		}
		for _, record := range fetches.Records() {
			next := &nexts[record.Partition]
			if record.Offset != *next {
				return fmt.Errorf("partition %d: offset %d for %d", record.Partition, record.Offset, *next)
			}
			if err := same(record, expected(topic, int(*next)*partitions+int(record.Partition), codec)); err != nil {
				return err
			}
			*next++
			total++
		}
	}
	ends, err := admin.ListEndOffsets(ctx, topic)
	ends.Each(func(end kadm.ListedOffset) {
		if end.Err != nil || end.Offset != nexts[end.Partition] {
			err = errors.Join(err, fmt.Errorf("partition %d ends at %d (%v)", end.Partition, end.Offset, end.Err))
		}
	})
	return err
}

func configOf(ctx context.Context, topic, name string) (string, error) {
	answers, err := admin.DescribeTopicConfigs(ctx, topic)
	if err != nil {
		return "", err
	}
	for _, config := range answers[0].Configs {
		if config.Key == name {
			return config.MaybeValue(), answers[0].Err
		}
	}
	return "", answers[0].Err
}

func lifeOfATopic(ctx context.Context) error {
	topic, hour, limit := unique("life"), "3600000", "65536"
	if err := create(ctx, topic, partitions, map[string]*string{"retention.ms": &hour}); err != nil {
		return err
	}
	if err := spreadOver(ctx, topic); err != nil {
		return err
	}
	if value, err := configOf(ctx, topic, "retention.ms"); err != nil || value != hour {
		return fmt.Errorf("retention.ms is %s (%v)", value, err)
	}
	altered, err := admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "max.message.bytes", Value: &limit}}, topic)
	if err = errors.Join(err, altered[0].Err); err != nil {
		return err
	}
	if err := until("the new config shows", func() (bool, error) {
		value, err := configOf(ctx, topic, "max.message.bytes")
		return value == limit, err
	}); err != nil {
		return err
	}
	grown, err := admin.UpdatePartitions(ctx, partitions+3, topic)
	if err = errors.Join(err, grown.Error()); err != nil {
		return err
	}
	if err := until("the new partitions have leaders", func() (bool, error) {
		leaders, err := leadersOf(ctx, topic)
		return len(leaders) == partitions+3, err
	}); err != nil {
		return err
	}
	if again, _ := admin.CreateTopic(ctx, 1, 1, nil, topic); !errors.Is(again.Err, kerr.TopicAlreadyExists) {
		return fmt.Errorf("created twice: %v", again.Err)
	}
	deleted, err := admin.DeleteTopic(ctx, topic)
	if err = errors.Join(err, deleted.Err); err != nil {
		return err
	}
	return until("the topic is gone", func() (bool, error) {
		topics, err := admin.ListTopics(ctx)
		return !topics.Has(topic), err
	})
}

func spreadOver(ctx context.Context, topic string) error {
	brokers, err := admin.ListBrokers(ctx)
	if err != nil {
		return err
	}
	leaders, err := leadersOf(ctx, topic)
	nodes := map[int32]bool{}
	for _, leader := range leaders {
		nodes[leader] = true
	}
	if len(nodes) != min(len(brokers), partitions) {
		return fmt.Errorf("%d partitions are on %d of %d nodes (%v)", partitions, len(nodes), len(brokers), err)
	}
	return err
}

func recordsAreDeleted(ctx context.Context) error {
	topic := unique("cut")
	if err := create(ctx, topic, 1, nil); err != nil {
		return err
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.DefaultProduceTopic(topic))
	if err != nil {
		return err
	}
	defer client.Close()
	for index := 0; index < 100; index++ {
		client.Produce(ctx, kgo.StringRecord(strconv.Itoa(index)), nil)
	}
	if err := client.Flush(ctx); err != nil {
		return err
	}
	var cut kadm.Offsets
	cut.AddOffset(topic, 0, 40, -1)
	answers, err := admin.DeleteRecords(ctx, cut)
	if err = errors.Join(err, answers.Error()); err != nil {
		return err
	}
	starts, err := admin.ListStartOffsets(ctx, topic)
	if start, _ := starts.Lookup(topic, 0); err == nil && start.Offset != 40 {
		err = fmt.Errorf("the log starts at %d (%v)", start.Offset, start.Err)
	}
	_, gone := admin.DeleteTopic(ctx, topic)
	return errors.Join(err, gone)
}
