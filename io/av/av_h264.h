/* av_h264.h - what libavcodec does not tell of an H.264: whether it may lack pictures (frame numbers then have gaps, and that is
 * no damage), and what is made of a picture. Inside the plugin alone.
 * Source: ITU-T H.264 (08/2021), sections 7.3.2.1.1, 7.4.2.1.1 and 7.3.3; ISO/IEC 14496-15:2017, section 5.3.3.1. */
#ifndef TGI_AV_H264_H
#define TGI_AV_H264_H

#include <stddef.h>
#include <stdint.h>

/* *gaps has a bit for the number of each sequence parameter set that allows gaps. Those in a track's header (avcC, or units behind
 * start codes), and those in front of a packet's first slice, take the place of earlier ones of their number. */
void tgi_av_h264_note_header(uint32_t *gaps, const uint8_t *header, size_t n);
void tgi_av_h264_note_packet(uint32_t *gaps, const uint8_t *header, size_t n,
                             const uint8_t *packet, size_t bytes);

/* What others are made of the picture in a packet: nothing, those near it, all up to a key frame. */
typedef enum tgi_av_h264_kind { TGI_AV_LEAF, TGI_AV_TWIG, TGI_AV_STEM } tgi_av_h264_kind;
/* By its first slice: one that is no B, or that nobody finds, is a stem. `header`: of its track. */
tgi_av_h264_kind tgi_av_h264_kind_of(const uint8_t *header, size_t n, const uint8_t *packet,
                                     size_t bytes);

#endif
